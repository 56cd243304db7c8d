/**
 * The schema of `access.db`: accounts, subscriptions, keys, and what operators asked for. It is a separate database so that
 * creating or revoking a key never waits for an ingest.
 */
import { CREATE_LOG_MARK } from './log-mark.ts';
import type { Schema } from './schema.ts';

const SQL = `
CREATE TABLE installation (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  kind TEXT NOT NULL CHECK (kind IN ('appliance', 'demo', 'lab')),
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

-- The last operation on the whole appliance that was requested; the log has each, with its actor.
CREATE TABLE operation (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- JSON: { kind, … }.
  request TEXT NOT NULL,
  asked_at INTEGER NOT NULL
) STRICT;

-- The epoch of the console: links and sessions of other epochs are invalid. No row: 0.
CREATE TABLE console (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- When it began, epoch milliseconds.
  epoch INTEGER NOT NULL
) STRICT;

-- Sessions of the console that were ended one by one.
CREATE TABLE ended_session (
  id TEXT PRIMARY KEY,
  ended_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

${CREATE_LOG_MARK}`;

export const ACCESS_SCHEMA: Schema = { application_id: 0x77770013, sql: SQL, synchronous: 'FULL' };

/** The tables that the access log records, each after those that it refers to. */
export const ACCESS_TABLES = [
  'installation',
  'account',
  'subscription',
  'api_key',
  'api_key_subscription',
  'ended_key',
  'removal',
  'ingest_pause',
  'operation',
  'console',
  'ended_session',
] as const;
