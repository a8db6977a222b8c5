"""A guessing game as an environment class for TRL's environment_factory.

The model calls the tool `guess` until it finds the number. Binary search finds one of 16 numbers in at most 5 guesses.
"""


class Guess:
    def reset(self, low=1, high=16, secret=1, **row):
        """Starts a game from the columns of a row; returns a text that is appended to the prompt."""
        self.low, self.high, self.secret = int(low), int(high), int(secret)
        self.guesses = 0
        self.found = False
        return f" The number is from {self.low} to {self.high}."

    def guess(self, number: int) -> str:
        """
        Guesses the number.

        Args:
            number: The guess

        Returns:
            Whether the number is higher or lower, or that it was found.
        """
        if self.found:
            return f"The game is over: the number was {self.secret}."
        number = int(number)
        if not self.low <= number <= self.high:
            raise ValueError(f"{number} is not from {self.low} to {self.high}")
        self.guesses += 1
        if number == self.secret:
            self.found = True
            return f"Yes, it is {number}, after {self.guesses} guesses."
        return "higher" if self.secret > number else "lower"

    def get_reward(self) -> float:
        """Returns 1 if the number was found as fast as by binary search, 0.1 less for each further guess, and at least 0.2."""
        if not self.found:
            return 0.0
        enough = (self.high - self.low + 1).bit_length()
        return max(1.0 - 0.1 * max(self.guesses - enough, 0), 0.2)
