/**
 * Power cuts: records how the real program changes its files, and from the record builds disk images that a power cut
 * may leave at any moment. Each image is recovered; everything that clients had received must still hold.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { type IoEvent, readRecord } from './io/record.ts';
import { type Part, type PartOptions, shareOf } from './part.ts';
import { checkImage } from './power/check.ts';
import { Disk, differences, pickSurvivors, SURVIVALS, type Survivors, writeImage } from './power/disk.ts';
import { commandsByPrint, type Known, learn, NOTHING_KNOWN } from './power/known.ts';
import { recordStory, type Story, startOn } from './power/story.ts';

const IMAGES = 20_000;
const STARTS = 200;
/** How often the power is cut again while the real program recovers an image. */
const CUTS_A_START = 10;
/** Every tenth image is compared with its log; of every fourth, the backup is verified. */
const SCRUB_EVERY = 10;
const BACKUP_EVERY = 4;
/** The same bug makes many images fail. */
const FAILURES_MAX = 10;
const PROGRESS_EVERY = 500;

export const power: Part = {
  name: 'power',
  about: 'cuts the power at any moment, keeping any part of the unsynced data',
  run: async (options) => cutPower(await recordStory(options.folder), options),
};

/** @param isOmitted which syncs to ignore, as if the program had not made them */
export async function cutPower(
  story: Story,
  options: PartOptions,
  isOmitted: (path: string) => boolean = () => false,
): Promise<void> {
  options.onProgress(`recorded ${story.events.length} calls and responses`);
  // In memory if possible: each image is read only once.
  const images = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : options.folder, 'wirewatch-power-'));
  const { tally } = options;
  const cuts = new Cuts(story, options, join(images, 'image'));
  const calls = story.events.filter(({ kind }) => !['answer', 'print', 'note'].includes(kind));
  tally.count('calls recorded', calls.length);
  tally.count('syncs recorded', calls.filter(isSync).length);
  tally.count('pages of the follower', story.pages.size);
  try {
    for (const [index, event] of story.events.entries()) {
      await cuts.cutBefore(index);
      if (tally.failures.length >= FAILURES_MAX) break;
      cuts.play(event, isSync(event) && isOmitted(event.path));
    }
    tally.failures.push(...cuts.unmetExpectations());
  } finally {
    rmSync(images, { recursive: true, force: true });
  }
}

const isSync = ({ kind }: IoEvent) => kind === 'sync' || kind === 'sync folder';

class Cuts {
  readonly #story: Story;
  readonly #disk: Disk;
  readonly #options: PartOptions;
  readonly #image: string;
  readonly #images: number;
  readonly #printed: ReturnType<typeof commandsByPrint>;
  #known: Known = NOTHING_KNOWN;
  #number = 0;

  constructor(story: Story, options: PartOptions, image: string) {
    this.#story = story;
    this.#disk = new Disk(story.root);
    this.#options = options;
    this.#image = image;
    this.#images = shareOf(options, IMAGES);
    this.#printed = commandsByPrint(story.events);
  }

  play(event: IoEvent, isOmitted: boolean): void {
    if (isOmitted) this.#options.tally.count('syncs left out');
    else this.#disk.play(event);
    this.#known = learn(this.#known, event, this.#story, this.#printed);
  }

  /** Builds and checks this moment's images, which are spread evenly over the record. */
  async cutBefore(index: number): Promise<void> {
    const until = ((index + 1) / this.#story.events.length) * this.#images;
    const { failures } = this.#options.tally;
    for (; this.#number < until && failures.length < FAILURES_MAX; this.#number += 1) {
      await this.#cut(index, this.#number);
      if (this.#number % PROGRESS_EVERY === 0)
        this.#options.onProgress(`${this.#number} of ${this.#images} images, ${failures.length} failures`);
    }
  }

  async #cut(index: number, number: number): Promise<void> {
    const prng = seededPrng(this.#options.seed, 'power image', number);
    const survivors = pickSurvivors(prng);
    const { content, names } = survivors;
    this.#options.tally.count('images');
    if (this.#disk.unsynced.size > 0)
      this.#options.tally.count(`with unsynced content: ${content} of it left`);
    if (this.#disk.pending.length > 0)
      this.#options.tally.count(`with unsynced names: ${names} of them left`);
    writeImage(this.#disk, survivors, prng, this.#image);
    const every = this.#images / shareOf(this.#options, STARTS);
    const isStarted = Math.floor(number / every) !== Math.floor((number - 1) / every);
    try {
      await (isStarted ? this.#start(prng) : this.#check(number));
    } catch (error) {
      this.#fail(index, number, survivors, error);
    }
  }

  /** Recovers the image with the real program, and cuts the power again during the recovery. */
  async #start(prng: Prng): Promise<void> {
    const disk = new Disk(this.#image);
    disk.load();
    const record = join(this.#options.folder, 'record-of-start');
    await startOn(this.#image, this.#story, this.#known, record);
    this.#options.tally.count('started by the real program');
    const events = readRecord(record);
    const cuts = Array.from({ length: CUTS_A_START }, () => prng.below(events.length)).sort((a, b) => a - b);
    const again = `${this.#image}-again`;
    let known = this.#known;
    for (const [index, event] of events.entries()) {
      for (; cuts[0] === index; cuts.shift()) {
        writeImage(disk, pickSurvivors(prng), prng, again);
        await checkImage(again, this.#story, known);
        this.#options.tally.count('cut again while it was brought back');
      }
      disk.play(event);
      known = learn(known, event, this.#story, this.#printed);
    }
    const [missed] = differences(disk);
    if (missed !== undefined)
      throw new Error(`the record of a start does not match ${missed}: a call was not recorded`);
    // What the start has left holds all that was known, and the file that was dropped after the cut.
    await checkImage(this.#image, this.#story, known);
  }

  async #check(number: number): Promise<void> {
    const depth = { scrub: number % SCRUB_EVERY === 0, backup: number % BACKUP_EVERY === 0 };
    const { applied, isRebuilt } = await checkImage(this.#image, this.#story, this.#known, depth);
    if (depth.scrub) this.#options.tally.count('compared with the log');
    if (depth.backup && this.#known.hasBackup) this.#options.tally.count('with a backup that was read');
    if (applied > 0) this.#options.tally.count('whose database was behind the log');
    if (isRebuilt) this.#options.tally.count('whose database was made anew');
  }

  /** Notes a failure, and keeps the image for inspection. */
  #fail(index: number, number: number, { content, names }: Survivors, error: unknown): void {
    const prng = seededPrng(this.#options.seed, 'power image', number);
    const left = join(this.#options.folder, `image-${number}`);
    writeImage(this.#disk, pickSurvivors(prng), prng, left);
    const { kind = '', path = '' } = this.#story.events[index] ?? {};
    const message = error instanceof Error ? error.message : String(error);
    this.#options.tally.failures.push(
      `seed ${this.#options.seed}, image ${number}, cut before call ${index} (${kind} ${path}); kept of the unsynced data: ${content} of the content, ${names} of the names: ${message}`,
    );
  }

  /** Failures of the test itself: calls that were not recorded, kinds of power cuts that did not occur. */
  unmetExpectations(): string[] {
    if (this.#options.tally.failures.length > 0) return [];
    const wanted = [
      ...SURVIVALS.map((left) => `with unsynced content: ${left} of it left`),
      ...SURVIVALS.slice(0, -1).map((left) => `with unsynced names: ${left} of them left`),
      'whose database was behind the log',
      'with a backup that was read',
      'compared with the log',
      'started by the real program',
      'cut again while it was brought back',
    ];
    const missed = differences(this.#disk).map(
      (path) => `the record does not match ${path}: a call was not recorded`,
    );
    const unfired = wanted
      .filter((what) => !(what in this.#options.tally.figures))
      .map((what) => `no image ${what}`);
    return [...missed, ...unfired];
  }
}
