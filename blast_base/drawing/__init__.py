"""Layout of a fabric's picture, which the client draws as SVG and the controller's page draws in the browser.

Start with `layout.py`. Imports `blast_api`.
"""
