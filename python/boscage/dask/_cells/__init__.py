"""Forests whose cells are apart: the client, and what runs on workers."""
