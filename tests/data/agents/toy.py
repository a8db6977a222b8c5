"""An environment as TRL has it: a number that can be looked at."""


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
