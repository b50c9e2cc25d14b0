"""The claims of papers, each shown by one command on a laptop."""
