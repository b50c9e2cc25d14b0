import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors of a few numbers gain nothing from threads, and lose much where other processes want the cores too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
