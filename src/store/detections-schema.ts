/**
 * The schema of `detections.db`.
 *
 * `stream_row` has every version; `detection` points to the newest version of each detection. A text is stored once, as
 * the change stream shows it, with the columns that filters need.
 *
 * The key of a row is its place (stream-place.ts): the stream's ordinal and the row's sequence number in one integer. So
 * the rows of a stream are neighbours, and a page of one stream reads few pages of the file, however many streams there
 * are. `position` is the order of arrival over all streams.
 */
import type { Schema } from './database.ts';

const SQL = `
-- Names the state of the file (checkpoint.ts).
CREATE TABLE file_state (token TEXT NOT NULL) STRICT;
INSERT INTO file_state VALUES (hex(randomblob(16)));

-- Ordinals follow the order in which streams first appear in the log, and are never used again: a removed stream keeps
-- its row, and a later stream with the same name gets another ordinal.
CREATE TABLE stream (
  ordinal INTEGER PRIMARY KEY CHECK (ordinal BETWEEN 1 AND 524287),
  subscription_id INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  -- Of its last row, and so how many rows there are.
  sequence INTEGER NOT NULL CHECK (sequence BETWEEN 0 AND 17179869183),
  position INTEGER NOT NULL,
  removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX stream_by_name ON stream (subscription_id, content_type) WHERE removed = 0;
CREATE INDEX stream_by_position ON stream (position);

CREATE TABLE stream_row (
  place INTEGER PRIMARY KEY,
  position INTEGER NOT NULL,
  version INTEGER NOT NULL,
  publisher_id INTEGER,
  domain TEXT,
  band INTEGER NOT NULL,
  -- Rounded to a whole number, half up.
  score INTEGER NOT NULL,
  print INTEGER NOT NULL,
  -- Of source.id, which is long.
  source_hash INTEGER,
  article_id INTEGER NOT NULL,
  body TEXT NOT NULL,
  -- Of body and place: row-checksum.ts.
  checksum INTEGER NOT NULL
) STRICT;

-- The order over several streams.
CREATE INDEX stream_row_by_position ON stream_row (place >> 34, position);

CREATE TABLE detection (
  id TEXT PRIMARY KEY,
  -- Of its newest version.
  place INTEGER NOT NULL,
  -- Epoch seconds.
  first_detected_at INTEGER NOT NULL,
  -- The exported_at of the export; null if it had none.
  exported_at_given TEXT,
  -- The address of a print article that the customer must not see.
  url_withheld TEXT
) STRICT, WITHOUT ROWID;

-- The default order of periods: newest first, then by ascending id. With the place, a page without filters needs nothing
-- else of this table.
CREATE INDEX detection_by_time ON detection (place >> 34, first_detected_at DESC, id, place);

-- The text of a detection that was scored again without a new version, by the place of its newest version. It differs
-- only in when it was scored and exported, which no filter uses.
CREATE TABLE rescored (
  place INTEGER PRIMARY KEY,
  body TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- One row for each transaction that added to the stream. delivered_at is taken after the commit (epoch milliseconds)
-- and written by the next transaction: null is later than any time.
CREATE TABLE delivery (
  first_position INTEGER PRIMARY KEY,
  last_position INTEGER NOT NULL,
  delivered_at INTEGER
) STRICT;

CREATE INDEX delivery_by_time ON delivery (delivered_at);

CREATE TABLE export_window (
  export TEXT NOT NULL,
  -- Epoch milliseconds.
  window_start INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'missing', 'abandoned')),
  -- When it got this status, epoch milliseconds.
  since INTEGER NOT NULL,
  -- The number of the file that caused it.
  file INTEGER,
  PRIMARY KEY (export, window_start)
) STRICT, WITHOUT ROWID;

CREATE INDEX export_window_by_status ON export_window (export, status, window_start);
-- Few rows, and all that alerts need.
CREATE INDEX export_window_not_done ON export_window (export, status, since) WHERE status <> 'done';

-- The first expected window of an export (the first that finished), and the one up to which missing windows were
-- found. Epoch milliseconds.
CREATE TABLE export_expectation (
  export TEXT PRIMARY KEY,
  expected_from INTEGER NOT NULL,
  looked_through INTEGER NOT NULL
) STRICT;

-- When missing windows were last searched for.
CREATE TABLE window_look (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  looked_at INTEGER NOT NULL
) STRICT;

-- Every file that was taken, by its ingest number.
CREATE TABLE ingest_file (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  export TEXT,
  window_start INTEGER,
  label TEXT,
  sha256 TEXT,
  bytes INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('applying', 'applied', 'repeated', 'failed', 'refused')),
  taken_at INTEGER NOT NULL,
  finished_at INTEGER,
  -- Rows of a backfill that are committed: where it continues after a crash.
  rows_applied INTEGER NOT NULL DEFAULT 0,
  -- The outcome of its rows, as JSON.
  report TEXT NOT NULL,
  -- Where the file belongs, relative to the drop folder.
  destination TEXT,
  -- 1 if rows were skipped: bad rows, or rows of unknown streams.
  rows_skipped INTEGER GENERATED ALWAYS AS (
    coalesce(report ->> '$.bad_rows', 0) > 0 OR coalesce(report -> '$.unknown_rows', '{}') <> '{}'
  ) VIRTUAL
) STRICT;

CREATE INDEX ingest_file_by_content ON ingest_file (sha256);
CREATE INDEX ingest_file_by_name ON ingest_file (name);
CREATE INDEX ingest_file_by_window ON ingest_file (export, window_start);
CREATE INDEX ingest_file_by_outcome ON ingest_file (outcome, finished_at);
CREATE INDEX ingest_file_skipped ON ingest_file (finished_at) WHERE rows_skipped = 1;

-- Each time that versions were raised, because it was not known what clients had seen.
CREATE TABLE version_epoch (
  -- How often they were raised by 1,000 then, in abandoned histories too, whose numbers are left out.
  number INTEGER PRIMARY KEY,
  -- Epoch milliseconds.
  at INTEGER NOT NULL,
  -- In words.
  reason TEXT NOT NULL,
  -- Positions continue after this one.
  position INTEGER NOT NULL,
  -- What changed after this position was announced again; null: nothing.
  announced_after INTEGER,
  -- What to do with archived files without a record.
  orphans TEXT NOT NULL CHECK (orphans IN ('to read', 'read', 'left'))
) STRICT;

-- Whether a transaction becomes visible only once the copy has it; no row: it never did.
CREATE TABLE copy_mode (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  waits INTEGER NOT NULL CHECK (waits IN (0, 1))
) STRICT;


-- The last entry of the log that is applied; no row: none.
CREATE TABLE log_mark (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  entry INTEGER NOT NULL,
  id TEXT NOT NULL
) STRICT;
`;

export const DETECTIONS_SCHEMA: Schema = { application_id: 0x77770011, sql: SQL, synchronous: 'NORMAL' };
