/**
 * Two machines and a copy: random histories of rows, shipping, following, promotions and compactions, in which the place
 * is away, a machine is killed between any two calls, or stands still within one while the other goes on. Their clocks
 * are a day apart. Clients read from both.
 *
 * Held in the end: a position and a version have one content, wherever they were read; both machines have the same
 * rows; and a client that read from either gets every later change behind its cursor. Where transactions wait for the copy,
 * nothing that a client read is lost, and no epoch begins.
 */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TakenOver } from '../../src/copy/ship.ts';
import { Refused } from '../../src/refused.ts';
import { DatabaseBehind } from '../../src/store/database-errors.ts';
import { readRole } from '../../src/store/role.ts';
import { DAY_MS } from '../../src/time.ts';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { contentOfDatabase } from '../support/database-content.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { Client, idOf, Machine, type Row } from './machines/machine.ts';
import { type History, type Part, runHistories, type Tally } from './part.ts';

const HISTORIES = 300;
const STEPS = 60;

export const machines: Part = {
  name: 'machines',
  about: 'runs 300 random histories of two machines and a copy: kills, pauses, promotions, compactions',
  run: (options) =>
    runHistories(options, HISTORIES, (number) => {
      const root = join(options.folder, `${number}`);
      return new Histories(root, seededPrng(options.seed, `machines ${number}`), options.tally);
    }),
};

class Killed extends Error {}

/** What a machine is doing while it stands still within a call of the place. */
type Paused = Readonly<{ work: Promise<void>; go: () => void; kill: () => void }>;

class Histories implements History {
  readonly steps: string[] = [];
  readonly #root: string;
  readonly #prng: Prng;
  readonly #tally: Tally;
  readonly #objects = new Map<string, Buffer>();
  readonly #one: Machine;
  readonly #other: Machine;
  readonly #client = new Client();
  readonly #paused = new Map<Machine, Paused>();
  /** Whether transactions wait for the copy. */
  readonly #waiting: 'never' | 'always' | 'changes';
  #names = 0;

  constructor(root: string, prng: Prng, tally: Tally) {
    mkdirSync(root);
    this.#root = root;
    this.#prng = prng;
    this.#tally = tally;
    this.#one = new Machine(join(root, 'one'), this.#objects, false, 0);
    this.#other = new Machine(join(root, 'other'), this.#objects, true, prng.pick([-DAY_MS, DAY_MS]));
    this.#waiting = prng.pick(['never', 'always', 'changes'] as const);
    for (const machine of [this.#one, this.#other]) machine.waits = this.#waiting === 'always';
  }

  async run(): Promise<void> {
    await this.#one.install();
    await this.#one.apply([1, 2, 3], 50);
    await this.#one.ship();
    await this.#other.becomeStandby();
    for (let step = 0; step < STEPS; step += 1) await this.#step();
    await this.#settle();
  }

  end(isSound: boolean): void {
    if (isSound) rmSync(this.#root, { recursive: true });
  }

  async #step(): Promise<void> {
    const prng = this.#prng;
    const machine = prng.pick([this.#one, this.#other]);
    const paused = this.#paused.get(machine);
    if (paused !== undefined) return this.#goOn(machine, paused);
    const within = (work: () => Promise<void>) => () => this.#within(machine, work);
    const apply = within(() => this.#apply(machine));
    const ship = within(() => machine.ship());
    const turn = within(() => machine.turn());
    const promote = within(() => machine.follow((follower) => follower.promote({ by: 'torture' })));
    const read = async () => this.#read(machine);
    const kill = () => this.#kill(machine);
    const kinds = machine.isTakenOver
      ? { return: () => machine.becomeStandby() }
      : machine.isWriter
        ? {
            ...{ apply, ship, 'ship all': ship },
            account: async () => machine.changeAccess(`account-${++this.#names}`),
            compact: prng.unit() < 0.3 ? within(() => machine.compact()) : apply,
            ...{ read, kill },
            ...(this.#waiting === 'changes' && { 'change of mode': () => this.#changeMode(machine) }),
          }
        : { follow: turn, read, promote: () => (prng.unit() < 0.3 ? promote() : turn()), kill };
    const [kind, work] = prng.pick(Object.entries<() => Promise<void>>(kinds));
    this.#note(`${machine === this.#one ? 'one' : 'other'} ${kind}`, kind);
    await work();
  }

  #note(step: string, kind: string): void {
    this.steps.push(step);
    this.#tally.count(kind);
  }

  async #changeMode(machine: Machine): Promise<void> {
    machine.waits = !machine.waits;
    await this.#kill(machine);
  }

  async #apply(machine: Machine): Promise<void> {
    const ids = Array.from({ length: 1 + this.#prng.below(4) }, () => 1 + this.#prng.below(30));
    await machine.apply([...new Set(ids)], 20 + this.#prng.below(70));
  }

  #read(machine: Machine): void {
    this.#client.read(machine.rows());
  }

  async #kill(machine: Machine): Promise<void> {
    try {
      await machine.restart();
    } catch (error) {
      if (!(error instanceof TakenOver)) throw error;
      this.#takenOver(machine);
    }
  }

  #takenOver(machine: Machine): void {
    this.#note('taken over', 'taken over');
    machine.kill();
    machine.isTakenOver = true;
  }

  /** Work that calls the place, during which it may be away, or the machine is killed, or stands still. */
  async #within(machine: Machine, work: () => Promise<void>): Promise<void> {
    const prng = this.#prng;
    const at = prng.below(24);
    const how = prng.pick(['away', 'kill', 'pause', 'nothing'] as const);
    const gate = Promise.withResolvers<void>();
    // The work may end for another reason before it waits there.
    gate.promise.catch(() => {});
    const reached = Promise.withResolvers<void>();
    let calls = 0;
    machine.place.before = () => {
      calls += 1;
      if (calls !== at || how === 'nothing') return;
      if (how === 'away') throw new Error('the place is away');
      if (how === 'kill') throw new Killed('killed');
      reached.resolve();
      return gate.promise;
    };
    const done = this.#settled(machine, work()).finally(reached.resolve);
    await reached.promise;
    let isDone = false;
    const noteEnd = () => {
      isDone = true;
    };
    // A failure is seen when it is awaited.
    done.then(noteEnd, noteEnd);
    await Promise.resolve();
    if (isDone || calls !== at || how !== 'pause') return done;
    this.#note('stands still', 'stands still');
    const kill = () => gate.reject(new Killed('killed'));
    this.#paused.set(machine, { work: done, go: gate.resolve, kill });
  }

  async #goOn(machine: Machine, { work, go, kill }: Paused): Promise<void> {
    this.#paused.delete(machine);
    this.#note('goes on', 'goes on');
    if (this.#prng.unit() < 0.7) go();
    else kill();
    await work;
  }

  async #settled(machine: Machine, work: Promise<void>, isAgain = false): Promise<void> {
    try {
      await work;
      if (machine.isWriter && readRole(machine.folder).epoch_due !== null) await this.#kill(machine);
    } catch (error) {
      if (error instanceof TakenOver) return this.#takenOver(machine);
      const { message } = error as Error;
      const isExpected =
        error instanceof Killed ||
        // The writer deleted an old generation while it was read.
        / is missing$/.test(message) ||
        error instanceof DatabaseBehind ||
        message === 'the place is away';
      // A standby that promoted itself while another did.
      const isLate = error instanceof Refused && /writer is alive and faster/.test(message);
      // An old writer between its log and its access.db: it learns why with its next write.
      const isReplaced = error instanceof Refused && /of another state of this installation/.test(message);
      if (isReplaced && !isAgain) return this.#settled(machine, machine.ship(), true);
      if (!isExpected && !isLate) throw error;
      await this.#kill(machine);
    }
  }

  /** Everything goes on, until both have all; then what was promised is looked at. */
  async #settle(): Promise<void> {
    for (const [machine, paused] of [...this.#paused]) {
      this.#paused.delete(machine);
      paused.go();
      await paused.work;
    }
    for (const machine of [this.#one, this.#other]) machine.place.before = () => {};
    // Only the copy, or the end of its log, may know yet that a machine was promoted.
    for (const machine of [this.#one, this.#other])
      if (!machine.isWriter && !machine.isTakenOver) await this.#settled(machine, machine.turn());
    // Whoever believes to write finds out; if nobody does, one is promoted.
    for (const machine of [this.#one, this.#other])
      if (machine.isWriter) await this.#settled(machine, machine.ship());
    const writers = () => [this.#one, this.#other].filter((machine) => machine.isWriter);
    assert.ok(writers().length <= 1, 'two writers');
    if (writers().length === 0) {
      if (this.#other.isTakenOver) await this.#other.becomeStandby();
      const promotion = this.#other.follow((follower) => follower.promote({ by: 'the end' }));
      await this.#settled(this.#other, promotion);
    }
    const [writer] = writers();
    assert.ok(writer);
    await this.#apply(writer);
    await writer.ship();
    const standby = writer === this.#one ? this.#other : this.#one;
    if (standby.isTakenOver) await standby.becomeStandby();
    // Twice: once more where the database was made anew.
    for (let turns = 0; turns < 2; turns += 1) await this.#settled(standby, standby.turn());
    this.#check(writer, standby);
    for (const machine of [writer, standby]) machine.kill();
  }

  #check(writer: Machine, standby: Machine): void {
    assert.deepEqual(standby.rows(), writer.rows());
    assert.deepEqual(contentOfDatabase(standby.db), contentOfDatabase(writer.db));
    if (this.#waiting === 'always') {
      const epochs = writer.db.prepare('SELECT count(*) FROM version_epoch').pluck().get();
      assert.equal(epochs, 0, 'an epoch began, though nothing was lost');
      const positions = new Set(writer.rows().map(({ position }) => position));
      const lacking = [...this.#client.positions].filter((position) => !positions.has(position));
      assert.deepEqual(lacking, [], 'a client saw what the writer lacks');
    }
    this.#client.read(writer.rows().filter(({ position }) => position > this.#client.cursor));
    for (const row of newest(writer.rows()).values()) {
      const id = idOf(row);
      const known = this.#client.has.get(id);
      assert.equal(known?.body, row.body, `a client keeps another ${id}, of version ${known?.version}`);
    }
  }
}

const newest = (rows: readonly Row[]): Map<string, Row> => new Map(rows.map((row) => [idOf(row), row]));
