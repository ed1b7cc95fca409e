"""Linear algebra: small products, each factorisation once, and the rank of rows."""
