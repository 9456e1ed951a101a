"""``Optimized.show``: the report as a page that notebooks show."""

import json
import re
from html.parser import HTMLParser

import nets
import pytest

import relayout


def data(html):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(found[1])


def test_the_page_says_what_the_report_does():
    result = relayout.optimize("tf_unet.onnx")
    page = data(result.show().html)
    assert (page["kind"], page["name"], page["summary"]) == ("optimize", "tf_unet.onnx", str(result.report))
    assert [graph["title"] for graph in page["graphs"]] == ["Before", "After"]
    assert len([move for move in page["moves"] if move["graph"] == 1]) == result.report.after.nodes


def test_a_notebook_shows_it_in_a_frame():
    shown = relayout.optimize("tf_unet.onnx").show(height=300)
    frames = []

    class Frames(HTMLParser):
        def handle_starttag(self, tag, attrs):
            frames.append((tag, dict(attrs)))

    parser = Frames()
    parser.feed(shown._repr_html_())
    parser.close()
    [(tag, attrs)] = frames
    assert tag == "iframe"
    assert attrs["srcdoc"] == shown.html
    assert "height:300px" in attrs["style"]
    assert attrs["title"]


def test_it_is_written_to_a_file(tmp_path):
    shown = relayout.optimize("tf_unet.onnx", target="nhwc").show()
    path = shown.save(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == shown.html
    assert data(shown.html)["target"] == "nhwc"
    with pytest.raises(OSError, match="none"):
        shown.save(tmp_path / "none" / "report.html")


def test_a_model_in_memory_has_a_page_too():
    page = data(relayout.optimize(nets.channels_last()).show().html)
    assert page["name"] == "the model"
    assert {"conv"} <= set(page["strings"])
