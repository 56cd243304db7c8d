/**
 * Starts a lab in its own folder, which is emptied first: that of `wirewatch lab`, or of `wirewatch demo`, a lab whose
 * clock runs and into which export files keep coming.
 */
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { addAccount } from '../auth/accounts.ts';
import { createKey, hashKey, parseKey } from '../auth/key.ts';
import { addKey, type NewKey } from '../auth/keys.ts';
import { openAccess } from '../auth/open-access.ts';
import { addSubscription } from '../auth/subscriptions.ts';
import { now } from '../clock.ts';
import { CONFIG_FILE_NAME } from '../config/file.ts';
import type { Config } from '../config/load.ts';
import { SAMPLE_ACCOUNT, SAMPLE_SUBSCRIPTIONS } from '../generate/rows.ts';
import { bootIngestThread } from '../ingest/threads/ingest-client.ts';
import type { Feed } from '../lab/feed.ts';
import { Lab } from '../lab/lab.ts';
import { Refused } from '../refused.ts';
import { writing } from '../store/database.ts';
import { dataFolder, ensureFolder, writeWhole } from '../store/folder.ts';
import { takeServeLocks } from '../store/locks.ts';
import { LAB_FILE } from './data-folder.ts';
import { actorOfProcess } from './operate.ts';
import { type Serving, serveAppliance, untilSignal } from './serving.ts';

export type LabKind = 'lab' | 'demo';

export interface LabKey extends Pick<NewKey, 'name' | 'subscriptions' | 'expires_at'> {
  readonly key: string;
}

export interface LabOptions {
  readonly seed: string;
  readonly keys: (prefix: string) => readonly LabKey[];
  /** The drop folder, in that data folder; default: the configured one. */
  readonly drop?: (root: string) => string;
  /** Drops the files that it begins with, while it starts. */
  readonly fill: (feed: Feed) => Promise<void>;
  /** Called when it listens; what was dropped is still being read. */
  readonly onListening?: (serving: Serving) => Promise<void>;
  readonly onStop: () => void;
}

export interface StartedLab {
  readonly serving: Serving;
  readonly lab: Lab;
  /** Resolves when a signal has stopped it. */
  readonly ended: Promise<void>;
}

/** @returns null if a signal ended it before it was ready @throws Refused `configuration` for a folder with other content */
export async function startLab(
  command: Command,
  kind: LabKind,
  { seed, keys, drop, fill, onListening = async () => {}, onStop }: LabOptions,
): Promise<StartedLab | null> {
  let lab: Lab | null = null;
  let filled = Promise.resolve();
  const serving = await serveAppliance(command, kind, {
    ingestThread: bootIngestThread(),
    graceMs: 0,
    async prepare(settings) {
      const config = labConfig(settings, drop?.(settings.dataFolder) ?? settings.ingest.drop);
      await beginAnew(config.dataFolder, kind);
      prepareAccess(config, kind, keys(config.keys.prefix));
      lab = new Lab(seed, config, kind);
      mkdirSync(config.ingest.drop, { recursive: true });
      filled = lab.fill(fill);
      return config;
    },
    intervene: (parts) => begun(lab).join(parts),
  });
  const running = begun(lab);
  let isStopping = false;
  const ended = untilSignal(serving, () => {
    isStopping = true;
    onStop();
  });
  const ready = async () => {
    await onListening(serving);
    await Promise.all([serving.appliance.readable, filled]);
    await running.rested();
    // A stop ends the wait, too.
    return isStopping ? undefined : { serving, lab: running, ended };
  };
  const failed = (error: unknown) => {
    // What a stop leaves undone is no failure.
    if (!isStopping) throw error;
  };
  const started = await Promise.race([ready().catch(failed), ended]);
  if (started !== undefined) return started;
  await ended;
  return null;
}

/** A key that follows from a seed. Anyone who knows the seed knows the key: a lab holds sample data only. */
export function seededKey(prefix: string, seed: string): string {
  const bytes = (length: number) =>
    hash('sha512', `wirewatch lab ${length} ${seed}`, 'buffer').subarray(0, length);
  return createKey(prefix, bytes).key;
}

/** Files of a lab are complete when they appear, so they need no quiet time. */
function labConfig(config: Config, drop: string): Config {
  return {
    ...config,
    ingest: { ...config.ingest, drop, quiet_ms: 0, rescan_seconds: 1 },
    // Whatever the environment sets: a lab writes to its own folder only.
    photos: { folder: join(config.dataFolder, 'photos') },
    backup: { ...config.backup, every_minutes: 0 },
  };
}

async function beginAnew(root: string, kind: LabKind): Promise<void> {
  const mark = `{"made_by":"wirewatch ${kind}"}\n`;
  const markFile = join(root, LAB_FILE);
  const folder = dataFolder(root);
  const there = existsSync(root) ? readdirSync(root) : [];
  const isOwn = existsSync(markFile) && readFileSync(markFile, 'utf8') === mark;
  if (there.some((name) => name !== CONFIG_FILE_NAME) && !isOwn)
    throw new Refused(
      'configuration',
      `${root} is not empty and not a folder of "wirewatch ${kind}", which would delete what is in it. Name another folder with --data.`,
    );
  ensureFolder(folder);
  writeWhole(markFile, mark);
  const release = await takeServeLocks(folder, () => {});
  const kept = [
    folder.lock,
    folder.serveLock,
    folder.stateLock,
    ...[LAB_FILE, CONFIG_FILE_NAME].map((name) => join(root, name)),
  ];
  for (const path of there.map((name) => join(root, name)))
    if (!kept.includes(path)) rmSync(path, { recursive: true, force: true });
  release();
}

function prepareAccess(config: Config, kind: LabKind, keys: readonly LabKey[]): void {
  const operation = { kind: 'command', command: kind, ...actorOfProcess() };
  using access = openAccess(config.dataFolder, { create: true, kind, operation });
  const account_id = SAMPLE_ACCOUNT.id;
  const terms = { account_id, scopes: ['detections:read' as const], allow_addresses: [], daily_rows: null };
  // In one transaction: each transaction is an fsync, and the user waits.
  writing(access, () => {
    addAccount(access, { ...SAMPLE_ACCOUNT, daily_rows: null }, now());
    for (const { id, name, timeZone: time_zone, contentTypes } of SAMPLE_SUBSCRIPTIONS)
      addSubscription(access, { id, account_id, name, time_zone, content_types: [...contentTypes] }, now());
    for (const { key, ...own } of keys) {
      const parsed = parseKey(key);
      if (parsed === null) throw new Error('a key of the sample agency does not have the form of a key');
      const { id, prefix } = parsed;
      addKey(access, { id, prefix, hash: hashKey(key), ...terms, ...own }, now());
    }
  });
}

function begun(lab: Lab | null): Lab {
  if (lab === null) throw new Error('the lab was not prepared');
  return lab;
}
