"""Reproductions of claims from papers, each with one command on a laptop."""
