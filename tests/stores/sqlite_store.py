# sqlite_store.py
import sqlite3

import toolcassette as tc


class SqliteStore(tc.BlobStore):
    """Cassettes as rows of a database; any number of processes may share it."""

    def __init__(self, file):
        super().__init__()
        self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._db.execute("create table if not exists cassettes (name text primary key, data blob not null)")

    def get(self, name):
        row = self._db.execute("select data from cassettes where name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def put(self, name, data, old):
        if old is None:
            done = self._db.execute("insert or ignore into cassettes values (?, ?)", (name, data))
        else:
            done = self._db.execute("update cassettes set data = ? where name = ? and data = ?", (data, name, old))
        return done.rowcount == 1

    def delete(self, name, old):
        return self._db.execute("delete from cassettes where name = ? and data = ?", (name, old)).rowcount == 1
