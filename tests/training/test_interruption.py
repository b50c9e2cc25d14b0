import os
import signal
import threading

import pytest

from saccade.training.interruption import Aborted, Interrupted, Interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_the_old_handler_comes_back(number):
    before = signal.getsignal(number)
    with Interruption() as interruption:
        assert not interruption.requested
        os.kill(os.getpid(), number)
        assert interruption.requested
    assert signal.getsignal(number) is before


def test_the_second_signal_is_obeyed():
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert interruption.requested


def test_with_several_processes_the_second_signal_is_ignored(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        with interruption.abortable():
            os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.requested


def test_abortable_work_is_left():
    with Interruption() as interruption:
        with pytest.raises(Aborted), interruption.abortable():
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Aborted), interruption.abortable():
            raise AssertionError("not begun at all")


def test_another_thread_sets_no_handlers():
    errors = []

    def enter():
        try:
            with Interruption():
                pass
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert errors == []


def test_it_ends_a_program_with_130():
    assert Interrupted(7).code == 130
