"""Federated analysis: sites that answer, coordinators that ask and add up, and what carries messages between them.

Only `site` can see a table.
"""
