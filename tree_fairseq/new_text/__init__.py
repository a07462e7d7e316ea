"""New lines and files: read as the folder was read, searched, and written."""
