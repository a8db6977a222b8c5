"""A training script of TRL with an environment: a number that can be looked at."""

from trl import GRPOConfig, GRPOTrainer


class Toy:
    def reset(self, **row):
        self.looks = 0
        return "+0="

    def look(self) -> str:
        """
        Looks at the number.

        Returns:
            The number.
        """
        self.looks += 1
        return "7"


if __name__ == "__main__":
    GRPOTrainer(model="model", args=GRPOConfig(), environment_factory=Toy).train()
