"""The HTTP client of the benchmark."""

from __future__ import annotations

import socket
import threading

import pytest

from bench.client import Address, BenchError, content, post
from bench.script import DELTA

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


def test_a_chunked_body_is_joined() -> None:
    response = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"

    assert content(response) == b"abcde"


def test_a_plain_body_follows_the_headers() -> None:
    assert content(HEAD + b"content-length: 3\r\n\r\nabc") == b"abc"


def test_a_truncated_response_is_an_error() -> None:
    with pytest.raises(BenchError, match="cut"):
        content(HEAD + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")


def test_a_server_error_is_quoted_in_the_exception() -> None:
    with pytest.raises(BenchError, match=r"500 oops.*it broke"):
        content(b"HTTP/1.1 500 Oops\r\n\r\nit broke")


def test_an_unreachable_server_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address(*free.getsockname())

    with pytest.raises(BenchError, match="does not answer"):
        post(address, "/", {})


def test_the_first_delta_is_timed_even_if_it_arrives_in_two_pieces() -> None:
    body = f"data: {DELTA}".encode()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=_answer_in_pieces, args=(listener, body))
        answering.start()
        exchange = post(Address(*listener.getsockname()), "/chat", {"id": "chat"})
        answering.join()

    assert exchange.body == body
    assert exchange.first is not None
    assert 0 < exchange.first <= exchange.last


def test_a_response_without_deltas_has_no_first_delta() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=_answer_in_pieces, args=(listener, b"nothing"))
        answering.start()
        exchange = post(Address(*listener.getsockname()), "/chat", {})
        answering.join()

    assert exchange.first is None


def _answer_in_pieces(listener: socket.socket, body: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.recv(65536)
        connection.sendall(HEAD + b"\r\n" + body[:10])
        connection.sendall(body[10:])
        # Unread bytes of the client are read before closing, or the kernel sends a reset.
        connection.shutdown(socket.SHUT_WR)
        connection.recv(65536)
