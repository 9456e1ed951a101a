"""Hooks of mkdocs: the navigation, links that lead out of docs/, and the page of the Python API.

In a checkout ``../crates/capi/install.sh`` leads to the file. On the site it leads to a copy below ``source/``, which is plain text. A
link to a file that is not there is left as it is, and mkdocs reports it. Links below ``api/`` lead to what other tools write.
"""

import re
from pathlib import Path
from urllib.parse import quote

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
#: A link of Markdown to something beside the folder docs, without what follows a #.
OUT = re.compile(r"\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")


#: The page of the Python API, which mkdocstrings fills.
PYTHON = """# API of Python

::: relayout
    options:
      show_root_heading: false

::: relayout.sweep

::: relayout.ir_pass

::: relayout.olive
"""


def on_config(config):
    """Pages that the navigation does not name stand at its end."""
    named = str(config.nav)
    rest = [page.name for page in sorted(Path(config.docs_dir).glob("*.md")) if f"'{page.name}'" not in named]
    if rest:
        config.nav.append({"More": rest})
    return config


def on_files(files, config):
    files.append(File.generated(config, "api/python.md", content=PYTHON))
    return files


def on_page_markdown(markdown, page, config, files):
    def link(match):
        source = ROOT / match[1]
        if not source.is_file():
            return match[0]
        place = f"source/{match[1]}.txt"
        if files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, content=source.read_bytes()))
        return f"]({quote(place)})"

    return OUT.sub(link, markdown)
