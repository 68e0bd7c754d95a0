"""A site's side: gives what comes to the rank that runs here, and returns what that sends."""

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from tsdp.federated import Request, answer

app = ClientApp()


@app.query()
def query(message: Message, context: Context) -> Message:
    asked = message.content["request"]
    request = Request(int(asked["number"]), asked["messages"], bool(asked["stop"]))
    # In a simulation nodes are numbered; a real one is told, as flower-supernode --node-config "rank=1 socket='rank1.sock'".
    node = context.node_config
    rank = int(node.get("rank", int(node.get("partition-id", 0)) + 1))
    found = answer(str(node.get("socket", f"rank{rank}.sock")), rank, request)
    content = ConfigRecord({"rank": found.rank, "messages": found.messages, "state": int(found.state)})
    return Message(content=RecordDict({"answer": content}), reply_to=message)
