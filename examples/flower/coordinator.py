"""The coordinator's side: takes the messages of rank 0 to all sites and their answers back, until training ends."""

import time

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

from tsdp.errors import ProgramError
from tsdp.federated import Answer, Request, State, coordinate

app = ServerApp()


TIMEOUT = 900.0  # of a site's answer, in seconds: longer than --rank-timeout


def nodes_of(grid: Grid, count: int, timeout: float = 300.0) -> list[int]:
    """The nodes of all sites, once they are there."""
    until = time.monotonic() + timeout
    while len(nodes := list(grid.get_node_ids())) != count:
        if time.monotonic() > until:
            raise ProgramError(f"found {len(nodes)} sites within {timeout:g} s; expected {count}")
        time.sleep(0.2)
    return nodes


@app.main()
def main(grid: Grid, context: Context) -> None:
    nodes = nodes_of(grid, int(context.run_config.get("sites", 2)))

    def ask(request: Request) -> list[Answer]:
        def message(node: int) -> Message:
            content = ConfigRecord({"number": request.number, "messages": request.messages, "stop": request.stop})
            return Message(content=RecordDict({"request": content}), message_type=MessageType.QUERY, dst_node_id=node)

        replies = list(grid.send_and_receive([message(node) for node in nodes], timeout=30 if request.stop else TIMEOUT))
        failed = [reply.error.reason for reply in replies if reply.has_error()]
        if failed or len(replies) < len(nodes):
            raise ProgramError(f"{len(nodes) - len(replies) + len(failed)} of {len(nodes)} sites have not answered: {'; '.join(map(str, failed))}")
        found = [reply.content["answer"] for reply in replies]
        return [Answer(int(one["rank"]), one["messages"], State(one["state"])) for one in found]

    exchanges = coordinate(str(context.run_config.get("socket", "rank0.sock")), ask)
    print(f"{exchanges} exchanges")
