"""LitServe with a run: python -m benchmarks.serving_litserve FOLDER PORT."""

import sys

import litserve

import saccade


class Api(litserve.LitAPI):
    def setup(self, device: str) -> None:
        self.run = saccade.load(sys.argv[1])

    def decode_request(self, request: dict[str, str]) -> str:
        return request["input"]

    def predict(self, inputs: list[str]) -> list[str]:
        return [answer.text for answer in self.run.predict(inputs)]

    def encode_response(self, output: str) -> dict[str, str]:
        return {"output": output}


if __name__ == "__main__":
    api = Api(max_batch_size=64, batch_timeout=0.005)
    litserve.LitServer(api, accelerator="cpu", workers_per_device=2).run(
        host="127.0.0.1", port=int(sys.argv[2]), generate_client_file=False
    )
