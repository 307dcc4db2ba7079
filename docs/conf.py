"""How the documentation is built: Markdown through MyST, search included, warnings are errors."""

project = "acp-replay"
author = "The acp-replay authors"
project_copyright = "2026, The acp-replay authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Record once, replay for ever"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["README.md"]
