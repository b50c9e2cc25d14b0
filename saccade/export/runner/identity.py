"""Names of users and items: known ones are numbered from 1, all others are 0."""


class InputReader:
    def __init__(self, about):
        self.about, self.numbers = about, {name: number for number, name in enumerate(about["names"], start=1)}

    def encode(self, value, most=None):
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        return self.numbers.get(str(value).strip(), 0)
