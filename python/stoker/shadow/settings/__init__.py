"""What of the script's settings is found and replaced: its batch, and all else with the line that says so."""
