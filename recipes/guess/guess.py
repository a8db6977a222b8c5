"""A guessing game as an environment class, as TRL's environment_factory takes it.

The model calls the tool `guess` until it has found the number. Halving what is left finds one of 16 numbers in 5 guesses at most.
"""


class Guess:
    def reset(self, low=1, high=16, secret=1, **row):
        """Begins a game with the columns of a row; what it returns is appended to the prompt."""
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
        """1 for a number that was found in no more guesses than halving takes; a tenth less for each further one, but never below 0.2."""
        if not self.found:
            return 0.0
        enough = (self.high - self.low + 1).bit_length()
        return max(1.0 - 0.1 * max(self.guesses - enough, 0), 0.2)
