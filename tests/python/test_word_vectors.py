"""Word vectors of others: word2vec's text and binary form, GloVe's text."""

import numpy as np
import pytest

from hstu import convert

GENERATOR = np.random.default_rng(7)


@pytest.mark.parametrize("binary", [False, True])
def test_word_vectors_go_in_and_out(folder, binary):
    words, vectors = ["17", "3", "20000000000"], GENERATOR.standard_normal((3, 5)).astype(np.float32) * np.float32(1e-3)
    file = folder / f"words.{binary}"
    convert.write_word2vec(file, words, vectors, binary)
    found = convert.read_word2vec(file)
    assert found[0] == words and found[1].tobytes() == vectors.tobytes()
    start = convert.from_word2vec(file, folder / f"word-rows.{binary}", texts=False)
    again = folder / f"again.{binary}"
    convert.to_word2vec(start.path, again, binary=binary)
    order = [1, 0, 2]
    found = convert.read_word2vec(again)
    assert found[0] == ["3", "17", "20000000000"] and found[1].tobytes() == vectors[order].tobytes()
    convert.from_word2vec(file, folder / f"text-rows.{binary}")
    texts = dict(zip(convert.read(folder / f"text-rows.{binary}").tables["item"].ids.tolist(), "abc"))
    convert.to_word2vec(folder / f"text-rows.{binary}", again, texts=texts, binary=binary)
    assert convert.read_word2vec(again)[0] == ["a", "b", "c"]
    data = file.read_bytes()
    file.write_bytes(data[:-9] if binary else data.rsplit(b" ", 1)[0])
    with pytest.raises(ValueError, match="word 3 of 3" if binary else "line 4: expected a word and 5 numbers, found 4"):
        convert.read_word2vec(file)


def test_word_vectors_without_a_first_line(folder):
    (folder / "glove").write_text("shoe 1 2\nnew york 0.5 -1e-3\n")
    words, vectors = convert.read_word2vec(folder / "glove")
    assert words == ["shoe", "new york"] and vectors.tolist() == [[1, 2], [0.5, float(np.float32(-1e-3))]]
    with pytest.raises(ValueError, match="'shoe' is no id"):
        convert.from_word2vec(folder / "glove", folder / "none", texts=False)


TEXTS = [
    ("2 2\nhat 0.5 1\nshoe 2 4\n", "as it is"),
    ("hat 0.5 1\nshoe 2 4\n", "without a first line"),
    ("\ufeff2 2\nhat 0.5 1\nshoe 2 4\n", "a mark of the order of bytes"),
    ("\ufeffhat 0.5 1\nshoe 2 4\n", "the mark without a first line"),
    ("2 2\r\nhat 0.5 1\r\nshoe 2 4\r\n", "line ends of Windows"),
    ("2 2 \nhat 0.5 1 \nshoe 2 4\t\n\n", "blanks at the end"),
    ("2\t2\nhat\t0.5\t1\nshoe  2   4", "tabs, more blanks, no last line end"),
    ("2 2\nhat 5e-1 +1.\nshoe 2.0E0 004\n", "other decimals"),
]


@pytest.mark.parametrize("text", [text for text, _ in TEXTS], ids=[name for _, name in TEXTS])
def test_forms_of_texts_are_the_same_vectors(tmp_path, text):
    (tmp_path / "words").write_bytes(text.encode())
    words, vectors = convert.read_word2vec(tmp_path / "words")
    assert words == ["hat", "shoe"] and vectors.tolist() == [[0.5, 1], [2, 4]] and vectors.dtype == np.float32


def test_a_binary_file_may_begin_with_the_mark(tmp_path):
    convert.write_word2vec(tmp_path / "words", ["a", "\u00a0"], np.eye(2), binary=True)
    (tmp_path / "words").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "words").read_bytes())
    words, vectors = convert.read_word2vec(tmp_path / "words")
    assert words == ["a", "\u00a0"] and vectors.tolist() == [[1, 0], [0, 1]]


def test_a_word_may_have_blanks_and_end_in_a_number_where_the_width_is_given(tmp_path):
    for words in (["Alien", "Star Wars", "Toy Story 2"], ["item 1", "item 2"], ["17", "18"]):
        convert.write_word2vec(tmp_path / "words", words, np.ones((len(words), 2)))
        assert convert.read_word2vec(tmp_path / "words")[0] == words
    (tmp_path / "words").write_text("0 7\n")
    assert convert.read_word2vec(tmp_path / "words")[1].shape == (0, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"2 2\nhat nan 0.2\nshoe 0.3 inf\n", "line 2: expected a word and 2 numbers, found nan"),
        (b"2 3\nhat nan 0.25 1.5\nshoe 1.5 2.5 3.5\n", "line 2: expected a word and 3 numbers, found nan"),
        (b"2 2\nhat 0,1 0,2\nshoe 0,3 0,4\n", "line 2: .* found 0,1, which is no number of float32"),
        (b"hat 1 2\nshoe 3 -inf\n", "line 2: .* found -inf"),
        (b"1 2\na 1e39 1\n", "line 2: .* found 1e39"),
        (b"1 2\na 1_0 1\n", "line 2: .* found 1_0"),
        (b"1 2\na 0x1 1\n", "line 2: .* found 0x1"),
        (b"1 2\na 1e 1\n", "line 2: .* found 1e"),
        ("1 2\na \u0663 1\n".encode(), r"line 2: .* found \\u0663,"),
        (b"a \x1b[2J 1\n", r"line 1: .* found \\x1b\[2J,"),
        (b"a 1 2\nb 1\n", "line 2: expected a word and 2 numbers, found 1"),
        (b"a\nb\n", "line 1: expected a word and its numbers, found 0"),
        (b"a 1 2\nb 1 2 3\n", "line 2: .* one more number, or the word 'b 1'"),
        (b"3 2\na 1 2\n\nb 1 2 3\nc 1 2\n", "line 4: .* one more number, or the word 'b 1'"),
        (b"a 1 2\nb 1 2\na 3 4\n", "the word 'a' occurs twice: words 1 and 3"),
        (b"3 2\na 1 2\nb 3 4 \n         ", "expected 3 words as its first line says, found 2"),
        (b"2000000000 300\na \0\0", "says 2000000000 words of 300 values, and 4 bytes follow"),
        (b"9 3\na 1 2 3\n", "says 9 words of 3 values"),
        (b"1 0\na\n", "says 1 words of 0 values"),
        (b"1 2\ncaf\xe9 1 2\n", "line 2: the word is not UTF-8"),
        (b"a\0b 1 2\n", "line 1: the word .* zero byte"),
        (b"1 1\na\nb \0\0\x80?", "word 1 of 1: the word .* line end"),
        (b"1 1\na \0\0\xc0\x7f", "word 1 of 1, 'a', has nan or infinity"),
        (b"1 1\n\xff \0\0\x80?", "word 1 of 1: the word is not UTF-8"),
        (b"2 1\na \0\0\x80?a \0\0\x80?", "the word 'a' occurs twice"),
        (b"1 1\na \0\0\x80?zzz", "3 bytes follow its 1 words"),
    ],
)
def test_what_is_no_file_of_vectors_is_named(tmp_path, text, message):
    (tmp_path / "words").write_bytes(text)
    with pytest.raises(ValueError, match=rf"words.*{message}"):
        convert.read_word2vec(tmp_path / "words")


@pytest.mark.parametrize(
    ("words", "vectors", "binary"),
    [
        (["a", "a"], np.ones((2, 2)), False),
        (["a", " b"], np.ones((2, 2)), False),
        (["a", "b\n"], np.ones((2, 2)), False),
        (["a", ""], np.ones((2, 2)), True),
        (["a", "b c"], np.ones((2, 2)), True),
        (["a", "b", "c 1"], np.ones((3, 2)), False),
        (["a", "b"], np.array([[1, 1], [1, np.nan]]), True),
        (["a", "b"], np.array([[1, 1], [1, 1e39]]), False),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path, words, vectors, binary):
    with pytest.raises(ValueError, match="words: "):
        convert.write_word2vec(tmp_path / "words", words, vectors, binary)
    assert not (tmp_path / "words").exists()


def test_words_that_are_ids_are_numbers_of_63_bits(tmp_path):
    words = [str(2**63 - 1), "0", "7"]
    convert.write_word2vec(tmp_path / "words", words, np.ones((3, 2)))
    start = convert.from_word2vec(tmp_path / "words", tmp_path / "rows", texts=False)
    assert convert.read(start.path).tables["item"].ids.tolist() == [0, 7, 2**63 - 1]
    for word in (str(2**63), "07", "\u0663", "-1", "1 2"):
        convert.write_word2vec(tmp_path / "words", [word], np.ones((1, 2)))
        with pytest.raises(ValueError, match="is no id"):
            convert.from_word2vec(tmp_path / "words", tmp_path / "none", texts=False)


@pytest.mark.parametrize("ids", [[1.5, 2], np.array([1, 2**63], np.uint64), ["a", None], ["a\nb", "c"], ["a", ""],
                                 ["a", "b\r"], ["a", "b\0"]])  # fmt: skip
def test_ids_that_would_become_others_are_refused(tmp_path, ids):
    with pytest.raises(ValueError, match="table item: "):
        convert.write_start(tmp_path / "none", tables={"item": (ids, np.ones((2, 2)))})


@pytest.mark.parametrize("table", ["../item", "/tmp/item", ".item", "a=../item", "a\nb", ""])
def test_names_of_tables_name_no_other_files(tmp_path, table):
    rows = convert.Rows(np.array([1, 2]), np.ones((2, 2), np.float32))
    with pytest.raises(ValueError, match="expected a name of letters"):
        convert.write_start(tmp_path / "none", tables={table: rows})
    with pytest.raises(ValueError, match="expected a name of letters"):
        convert.write_dynamicemb({table: rows}, tmp_path / "dump")
