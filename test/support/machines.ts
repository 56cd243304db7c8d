/** Machines with an appliance each, of which one runs, and clients that follow whichever it is. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { createInstallation, type Installation, putFile, type Serving } from './appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs, type Row } from './export-files.ts';
import { Follower, type Get, type Page, settle as settleAll } from './followers.ts';

const SETTINGS = { WIREWATCH_SERVER_BASE_URL: 'https://api.example', WIREWATCH_INGEST_QUIET_MS: '0' };
const SHIFTED_CLOCK = join(import.meta.dirname, 'shifted-clock.cjs');
const PATIENCE_MS = 20_000;

/** A machine: its data folder, and the appliance on it while it runs. */
export class Machine {
  readonly installation: Installation;
  readonly clock: Readonly<Record<string, string>>;
  serving: Serving | null = null;

  /** @param shiftMs by how much its clock is wrong */
  constructor(shiftMs = 0) {
    this.clock =
      shiftMs === 0
        ? {}
        : { NODE_OPTIONS: `--require=${SHIFTED_CLOCK}`, TEST_CLOCK_SHIFT_MS: String(shiftMs) };
    this.installation = createInstallation({ ...SETTINGS, ...this.clock });
    machines.push(this);
  }

  get data(): string {
    return this.installation.data;
  }

  async start(): Promise<void> {
    this.serving = await this.installation.serve();
    current = this;
  }

  async stop(): Promise<void> {
    await this.serving?.stop();
    this.serving = null;
  }

  async ingest(rows: readonly Row[]): Promise<void> {
    const name = fileName('newswire', nextWindowMs());
    putFile(this.installation.drop, name, ndjson(rows));
    await this.serving?.logged('the file', ({ msg, file }) => msg === 'file applied' && file === name);
  }

  backUp(name: string): string {
    const target = join(work, name);
    this.installation.cli(['backup', target]);
    return target;
  }

  /** In place of what was made for it, or with --replace of its history. */
  restore(source: string, ...more: string[]) {
    if (more.length === 0) rmSync(this.data, { recursive: true });
    return JSON.parse(this.installation.cli(['restore', source, ...more, '--json']).stdout);
  }

  /** The archive of a machine that died. */
  takeArchiveOf({ installation }: Machine): void {
    cpSync(join(installation.drop, 'archive'), join(this.installation.drop, 'archive'), { recursive: true });
  }

  async get(path: string): Promise<Page> {
    const answer = await fetch(`${this.serving?.url}${path}`, {
      headers: { authorization: `Bearer ${this.installation.key}` },
    });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return JSON.parse(text);
  }
}

let machines: Machine[];
let current: Machine;
export let work: string;
beforeEach(() => {
  machines = [];
  work = mkdtempSync(join(tmpdir(), 'wirewatch-disasters-'));
});
afterEach(async (context) => {
  if ('passed' in context && context.passed === false)
    for (const line of current.serving?.log.slice(-30) ?? []) console.error(JSON.stringify(line));
  for (const machine of machines) {
    await machine.stop();
    machine.installation.remove();
  }
  rmSync(work, { recursive: true, force: true });
});

/** Asks whichever machine runs. */
export const get: Get = (path) => current.get(path);

export const settle = (followers: readonly Follower[]) => settleAll(followers, get);

/** {@link settle}, until a fresh client has all that one of them has. */
export async function settleWith(followers: readonly Follower[], whole: Follower | undefined): Promise<void> {
  const ids = [...(whole?.copy.keys() ?? [])].sort();
  for (const untilMs = performance.now() + PATIENCE_MS; ; ) {
    const client = await settle(followers);
    if ([...client.copy.keys()].sort().join() === ids.join()) return;
    assert.ok(performance.now() < untilMs, 'something is lost');
  }
}

export const rowsOf = (count: number) => Array.from({ length: count }, () => newRow());

/** Rows with another score, of a later time. */
export function rescored(rows: readonly Row[], score: number): Row[] {
  const at = formatMs(nextWindowMs());
  return rows.map((row) => ({ ...row, strength_score: score, last_scored_at: at }));
}

export interface Story {
  readonly machine: Machine;
  readonly rows: readonly Row[];
  readonly backup: string;
  readonly followers: readonly Follower[];
}

/** A machine with a history, a backup in the middle, and followers: behind that, caught up with it, ahead of it. */
export async function story(shiftMs = 0): Promise<Story> {
  const machine = new Machine(shiftMs);
  await machine.start();
  const [behind, caughtUp, ahead, halfAhead] = [
    new Follower(7),
    new Follower(),
    new Follower(3),
    new Follower(),
  ];
  const rows = rowsOf(12);
  await machine.ingest(rows);
  await behind.follow(get);
  await machine.ingest(rescored(rows.slice(0, 6), 40));
  await Promise.all([caughtUp.follow(get), ahead.follow(get), halfAhead.follow(get)]);
  const backup = machine.backUp('backup');
  await machine.ingest([...rescored(rows.slice(0, 4), 50), ...rowsOf(2)]);
  await Promise.all([ahead.follow(get), halfAhead.follow(get)]);
  await machine.ingest([...rescored(rows.slice(0, 3), 60), ...rowsOf(2)]);
  await ahead.follow(get);
  return { machine, rows, backup, followers: [behind, caughtUp, ahead, halfAhead] };
}

export const version = ({ copy }: Follower, row: Row | undefined) =>
  copy.get(`t.${row?.subscription_id}.${row?.source_internal_id}.${row?.article_id}`)?.version ?? 0;
