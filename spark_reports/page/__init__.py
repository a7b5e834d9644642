"""The report's page: charts as SVG, tables, HTML."""
