"""The SQLite store: tables, records with check sums, group commit, and what is kept in memory of them."""
