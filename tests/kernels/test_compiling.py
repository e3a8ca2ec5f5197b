import gc
import threading

import numpy as np
import pytest
from numba import njit
from numba.core.event import Event, EventStatus, Listener, register, unregister

from lnml.kernels.cpu.compiling import SeldomCollected, helper, inlined, loop

START = Event("numba:compiler_lock", EventStatus.START)
END = Event("numba:compiler_lock", EventStatus.END)


@pytest.fixture(autouse=True)
def _usual_thresholds():
    usual = gc.get_threshold()
    yield
    assert gc.get_threshold() == usual


def test_loops_helpers_and_inlined_functions_work_together():
    @inlined()
    def square(value):
        return value * value

    @helper()
    def add(total, value):
        return total + square(value)

    @loop()
    def sum_of_squares(values):
        total = 0.0
        for value in values:
            total = add(total, value)
        return total

    assert sum_of_squares(np.array([1.0, 2.0, 3.0])) == 14.0


def test_the_collector_comes_seldom_while_numba_compiles_and_as_before_afterwards():
    before, during = gc.get_threshold(), []

    class Noting(Listener):
        def on_start(self, event):
            during.append(gc.get_threshold())

        def on_end(self, event):
            pass

    register("numba:compiler_lock", noting := Noting())
    try:
        njit(lambda x: x + 1)(1)
    finally:
        unregister("numba:compiler_lock", noting)
    assert during and all(found[0] > before[0] for found in during)
    assert all(found[1:] == before[1:] for found in during)
    assert gc.get_threshold() == before


def test_a_function_that_does_not_compile_leaves_the_thresholds():
    with pytest.raises(Exception, match="nothing_known"):
        njit(lambda x: nothing_known(x))(1)  # noqa: F821


@pytest.mark.parametrize("first", [0, 100_000])
def test_thresholds_of_users_are_respected(first):
    usual = gc.get_threshold()
    gc.set_threshold(first, *usual[1:])
    listener = SeldomCollected()
    try:
        listener.on_start(START)
        assert gc.get_threshold()[0] == first
        listener.on_end(END)
        assert gc.get_threshold()[0] == first
    finally:
        gc.set_threshold(*usual)


def test_a_threshold_that_is_set_meanwhile_stays():
    usual, listener = gc.get_threshold(), SeldomCollected()
    listener.on_start(START)
    gc.set_threshold(123, 4, 5)
    listener.on_end(END)
    try:
        assert gc.get_threshold()[:2] == (123, 4)
    finally:
        gc.set_threshold(*usual)


def test_a_forked_process_begins_anew():
    usual, listener = gc.get_threshold(), SeldomCollected()
    for _ in range(3):
        listener.on_start(START)
    listener.begin_anew()
    assert gc.get_threshold() == usual
    listener.on_start(START)
    assert gc.get_threshold() != usual
    listener.on_end(END)
    assert gc.get_threshold() == usual


def test_nested_and_unpaired_events_put_the_thresholds_back():
    usual, listener = gc.get_threshold(), SeldomCollected()
    listener.on_end(END)
    listener.on_start(START)
    listener.on_start(START)
    listener.on_end(END)
    assert gc.get_threshold() != usual
    listener.on_end(END)
    assert gc.get_threshold() == usual


def test_many_threads_at_a_time_put_the_thresholds_back():
    listener, usual = SeldomCollected(), gc.get_threshold()

    def work():
        for _ in range(2000):
            listener.on_start(START)
            listener.on_end(END)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.get_threshold() == usual
