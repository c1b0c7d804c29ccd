"""What all pages for people share: their colours and logo, their style sheet and their figures.

Pages are made of published numbers only; nothing here can reach a table.
"""
