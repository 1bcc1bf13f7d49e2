"""How a step is recorded: operators run real, fake or across, steps are told apart, and one becomes a RawStep."""
