/** The schema of `access.db`, which is a database of its own so that revoking a key never waits for an ingest. */
import type { Schema } from './database.ts';

const SQL = `
CREATE TABLE installation (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  kind TEXT NOT NULL CHECK (kind IN ('appliance', 'demo', 'lab')),
  -- Random: tells the copies of one installation from those of another.
  uid TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE account (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  -- Null: the setting [limits] daily_rows.
  daily_rows INTEGER,
  print_metadata INTEGER NOT NULL DEFAULT 0,
  suspended_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE subscription (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES account (id),
  name TEXT,
  time_zone TEXT NOT NULL,
  -- JSON array of content types.
  content_types TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX subscription_by_account ON subscription (account_id);

CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES account (id),
  name TEXT NOT NULL,
  -- The first part of the key. With the id and the secret part, it gives the whole key.
  prefix TEXT NOT NULL,
  -- SHA-256 of the whole key.
  hash BLOB NOT NULL CHECK (length(hash) = 32),
  -- JSON array.
  scopes TEXT NOT NULL,
  -- Epoch milliseconds, as all times here.
  expires_at INTEGER,
  revoked_at INTEGER,
  -- JSON array of addresses and CIDR blocks; empty: any address.
  allow_addresses TEXT NOT NULL,
  daily_rows INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX api_key_by_account ON api_key (account_id);

CREATE TABLE api_key_subscription (
  key_id TEXT NOT NULL REFERENCES api_key (id),
  subscription_id INTEGER NOT NULL REFERENCES subscription (id),
  -- JSON array; null: the types that the subscription has when the key is used.
  content_types TEXT,
  PRIMARY KEY (key_id, subscription_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX api_key_subscription_by_subscription ON api_key_subscription (subscription_id);

-- Keys that were removed with their account: the configuration must not create them again.
CREATE TABLE ended_key (
  id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Removed subscriptions whose rows are still being deleted: the next owner of the number would see them.
CREATE TABLE removal (
  subscription_id INTEGER PRIMARY KEY,
  -- Of the removed subscription; it may be removed itself.
  account_id TEXT NOT NULL
) STRICT;

-- A row while ingest is paused.
CREATE TABLE ingest_pause (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  paused_at INTEGER NOT NULL
) STRICT;

-- The audit trail: an entry for each transaction that changed something which it shows.
CREATE TABLE audit (
  -- Without gaps.
  entry INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  -- JSON: { kind, command, actor, … }.
  operation TEXT NOT NULL,
  -- JSON array, as auth/audit.ts describes it.
  changes TEXT NOT NULL,
  -- CRC-32 of the entry.
  checksum INTEGER NOT NULL
) STRICT;

-- How many transactions have changed the database: of two copies, the later one has more.
CREATE TABLE change (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  number INTEGER NOT NULL
) STRICT;
INSERT INTO change VALUES (1, 0);
`;

export const ACCESS_SCHEMA: Schema = { application_id: 0x77770013, sql: SQL, synchronous: 'FULL' };
