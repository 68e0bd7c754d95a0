#!/usr/bin/env python3
"""A run's report.html as Chromium shows it: on a phone and on a desk, light and dark, and on paper.

    report_in_browser.py --bin build/release/bin [--page FILE] [--screenshots FOLDER]

Skipped where there is no Chromium (scripts/test.sh installs it). TSDP_CHROMIUM names another one.
"""

import argparse
import json
import pathlib
import re
import tempfile
import zlib

import chromium
import run

# For every piece of text that is shown: its size as rendered, and its contrast with what is behind it (WCAG 2.2, 1.4.3).
MEASURE = r"""
(() => {
  const parsed = text => {
    const m = text.match(/rgba?\(([^)]+)\)/);
    if (!m) return null;
    const p = m[1].split(/[ ,\/]+/).map(Number);
    return {r: p[0], g: p[1], b: p[2], a: p.length > 3 ? p[3] : 1};
  };
  const over = (top, below) => ({r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a),
                                 b: top.b * top.a + below.b * (1 - top.a), a: 1});
  const behind = element => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (at instanceof SVGSVGElement) {
        const paper = at.querySelector(':scope > .paper');
        if (paper) layers.push(parsed(getComputedStyle(paper).fill));
      }
      const colour = parsed(style.backgroundColor);
      if (colour && colour.a > 0) layers.push(colour);
      if (layers.length && layers[layers.length - 1].a === 1) break;
    }
    let colour = {r: 255, g: 255, b: 255, a: 1};
    for (const layer of layers.reverse()) colour = over(layer, colour);
    return colour;
  };
  const light = c => {
    const f = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); };
    return 0.2126 * f(c.r) + 0.7152 * f(c.g) + 0.0722 * f(c.b);
  };
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || ['TITLE', 'DESC', 'STYLE'].includes(element.tagName.toUpperCase())) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    let size = parseFloat(style.fontSize);
    if (drawn) { const m = element.getScreenCTM(); size *= Math.hypot(m.a, m.b); }
    const back = behind(element);
    const ink = over(parsed(drawn ? style.fill : style.color), back);
    const [a, b] = [light(ink), light(back)];
    texts.push({text: node.data.trim().slice(0, 60), size, contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
                inside: drawn ? (() => { const s = element.ownerSVGElement;
                  let outer = s; while (outer.ownerSVGElement) outer = outer.ownerSVGElement;
                  const o = outer.getBoundingClientRect();
                  return box.left >= o.left - 1 && box.right <= o.right + 1 && box.top >= o.top - 1 && box.bottom <= o.bottom + 1;
                })() : true});
  }
  const charts = [...document.querySelectorAll('svg.tsdp-plot:not(.sample)')].map(svg => {
    const label = name => (svg.querySelector('.' + name) || {textContent: ''}).textContent.trim();
    const box = svg.getBoundingClientRect();
    return {title: (svg.querySelector(':scope > title') || {textContent: ''}).textContent,
            desc: (svg.querySelector(':scope > desc') || {textContent: ''}).textContent,
            x: label('x-label'), y: label('y-label'), role: svg.getAttribute('role'),
            box: [box.left + scrollX, box.top + scrollY, box.width, box.height]};
  });
  return {width: document.documentElement.scrollWidth, view: document.documentElement.clientWidth,
          background: getComputedStyle(document.body).backgroundColor, texts, charts};
})()
"""

# Tables that are shown and wider than their place.
CUT = ("[...document.querySelectorAll('.scroll')].filter(s => s.checkVisibility({contentVisibilityAuto: true}) && "
       "s.scrollWidth > s.clientWidth + 1).map(s => s.getAttribute('aria-label'))")


def check_measures(found, where, charts):
    assert found["width"] <= found["view"], f"{where}: the page is {found['width']} px wide in {found['view']} px"
    assert len(found["texts"]) > 100
    for text in found["texts"]:
        assert text["size"] >= 12, f"{where}: {text}"
        assert text["contrast"] >= 4.5, f"{where}: {text}"
        assert text["inside"], f"{where}: cut off: {text}"
    assert len(found["charts"]) == charts, f"{where}: {[chart['title'] for chart in found['charts']]}"
    for chart in found["charts"]:
        assert all(chart[key] for key in ("title", "desc", "x", "y")) and chart["role"] == "img", f"{where}: {chart}"


def coloured_pixels(png):
    """How many pixels of a picture are neither grey nor the picture's background: of curves, bands and bars."""
    width, height, channels, data = chromium.pixels(png)
    count = 0
    for at in range(0, width * height * channels, channels):
        red, green, blue = data[at:at + 3]
        count += max(red, green, blue) - min(red, green, blue) > 40
    return count


def check_paper(browser, charts, screenshots):
    pdf = browser.pdf()
    if screenshots:
        (screenshots / "report.pdf").write_bytes(pdf)
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert pages > 1, f"{pages} pages"
    # Filled and stroked paths in the pages' content: every chart has dozens.
    paths = 0
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.S):
        try:
            content = zlib.decompress(stream)
        except zlib.error:
            continue
        if b" re\n" in content or b" l\n" in content:
            paths += len(re.findall(rb"\n(?:S|f|f\*|B)\n", content))
    assert paths > 12 * charts, f"{paths} paths on {pages} pages"
    # A4 within its margins, all pages in view at once: what is out of view moves when it is pictured.
    browser.emulate(width=688, height=1017, scheme="dark", media="print")
    browser.emulate(width=688, height=browser.evaluate("document.documentElement.scrollHeight"), scheme="dark", media="print")
    found = browser.evaluate(MEASURE)
    assert found["background"] == "rgb(255, 255, 255)", f"paper is {found['background']}"
    for text in found["texts"]:
        assert text["contrast"] >= 4.5 and text["size"] >= 12, f"paper: {text}"
    # Nothing scrolls there.
    cut = browser.evaluate("[...document.querySelectorAll('.scroll')].filter(s => s.clientWidth > 0 && "
                           "s.scrollWidth > s.clientWidth + 1).map(s => s.getAttribute('aria-label'))")
    assert not cut, f"paper: wider than the page: {cut}"
    for chart in found["charts"]:
        coloured = coloured_pixels(browser.screenshot(clip=chart["box"]))
        assert coloured > 100, f"paper: '{chart['title']}' has {coloured} coloured pixels"
    return pages


def check_page(browser, page, charts, screenshots=None):
    url = page.resolve().as_uri()
    browser.emulate()
    browser.open(url)
    for width in (360, 500, 700, 1280):
        for scheme in ("light", "dark"):
            browser.emulate(width=width, height=800, scheme=scheme, mobile=width < 600)
            check_measures(browser.evaluate(MEASURE), f"{width} px, {scheme}", charts)
            # Only the numbers of a series, folded away at first, may need scrolling to the side.
            cut = browser.evaluate(CUT)
            assert not cut, f"{width} px: wider than the page: {cut}"
            if screenshots:
                (screenshots / f"report-{width}-{scheme}.png").write_bytes(browser.screenshot(whole=True))
    # With all tables unfolded, too; the page itself has no script to do so.
    browser.emulate(width=360, height=800, mobile=True)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    check_measures(browser.evaluate(MEASURE), "360 px, unfolded", charts)
    pages = check_paper(browser, charts, screenshots)
    requests = [event["params"]["request"]["url"] for event in browser.events
                if event.get("method") == "Network.requestWillBeSent"]
    assert requests == [url], requests
    said = [event["params"] for event in browser.events
            if event.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")]
    assert not said, said
    print(f"{page.name}: {charts} charts, {page.stat().st_size // 1000} kB, {pages} pages on paper")


def check_policy(browser, page):
    """What the page forbids is forbidden: a copy that wants a picture, a script and a style sheet gets none of them."""
    text = page.read_text()
    copy = page.with_name("wanting.html")
    copy.write_text(text.replace("</body>", '<img src="x.png"><script>document.title = "ran"</script>'
                                 '<script src="x.js"></script><link rel="stylesheet" href="x.css"></body>'))
    for name in ("x.png", "x.js", "x.css"):
        page.with_name(name).write_text("document.title = 'ran'")
    browser.emulate()
    browser.open(copy.resolve().as_uri())
    assert browser.evaluate("document.title") != "ran"
    refused = [event["params"]["entry"]["text"] for event in browser.events if event.get("method") == "Log.entryAdded"]
    assert len(refused) >= 4 and all("Content Security Policy" in entry for entry in refused), refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin")
    parser.add_argument("--page", type=pathlib.Path, help="look at this page of a private run instead of making some")
    parser.add_argument("--screenshots", type=pathlib.Path, help="leave pictures and a PDF in this folder")
    options = parser.parse_args()
    browser_program = chromium.find()
    if browser_program is None:
        run.skip("no Chromium here (package chromium)")
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    if options.page:
        charts = len(re.findall('<svg xmlns="[^"]*" class="tsdp-plot" role="img"', options.page.read_text()))
        with chromium.Browser(browser_program) as browser:
            check_page(browser, options.page, charts, options.screenshots)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run.write_series(folder / "<b>series&\"'.txt", columns=12)
        config = run.write_config(folder / "config.yaml", json.dumps(str(folder / "<b>series&\"'.txt")))
        made = folder / "private-run"
        run.program(options.bin, "tsdp-train", "--quiet", "--threads", "1", "--config", config, "--output", made)
        bare = folder / "bare-run"
        run.program(options.bin, "tsdp-train", "--quiet", "--threads", "1", "--config", config, "--output", bare,
                    "--set", "privacy.enabled=false", "--set", "dataset.validation_length=0", "--set", "training.max_epochs=30")
        with chromium.Browser(browser_program) as browser:
            page = made / "private/report.html"
            check_page(browser, page, 6 + 1 + 3 + 1, options.screenshots)  # forecasts, scores, training, attacker
            check_policy(browser, page)
            page = bare / "private/report.html"
            check_page(browser, page, 6 + 1 + 1)
            assert "No privacy" in page.read_text() and "ε ≤" not in page.read_text()
            # Of a run without any log, anew.
            (made / "private/metrics.jsonl").unlink()
            run.program(options.bin, "tsdp-evaluate", "--quiet", "--run", made, "--report", "--split", "validation")
            page = made / "private/report.html"
            check_page(browser, page, 6 + 1 + 1)
            assert "Nothing was logged" in page.read_text() and "validation windows" in page.read_text()


if __name__ == "__main__":
    main()
