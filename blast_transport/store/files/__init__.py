"""Files and folders as the file system has them: names, holes, links, tables of entries.

Start with `folder_table.py`.
"""
