"""Pictures with their figures as CSV, and what is measured for them; a folder for each paper's evaluation."""
