"""The lock that is handed on in the order of asking."""

import threading
import time

from collabsim.locks import FairLock


def test_holders_come_in_the_order_in_which_they_asked():
    turns, order = FairLock(), []

    def take(name):
        with turns:
            order.append(name)

    with turns:
        threads = []
        for name in range(6):
            threads.append(threading.Thread(target=take, args=(name,)))
            threads[-1].start()
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert order == list(range(6))


def test_only_one_holds_it():
    turns, inside, most = FairLock(), 0, 0

    def work():
        nonlocal inside, most
        for _ in range(200):
            with turns:
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)


def test_an_error_inside_hands_it_on():
    turns = FairLock()
    try:
        with turns:
            raise ValueError
    except ValueError:
        pass
    with turns:
        pass
