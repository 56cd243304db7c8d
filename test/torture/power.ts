/**
 * Power cuts: records how the real program changes its files, and from the record builds disk images that a power cut
 * may leave at any moment. Each image is recovered; everything that clients had received must still hold.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Prng } from '../../src/tools/generate/prng.ts';
import { seededPrng } from '../support/seeded-prng.ts';
import { type IoEvent, readRecord } from './io/record.ts';
import { type Part, type PartOptions, shareOf, type Tally } from './part.ts';
import { checkImage } from './power/check.ts';
import { Disk, differences, SURVIVALS, writeImage } from './power/disk.ts';
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

const isSync = ({ kind }: IoEvent) => kind === 'sync' || kind === 'sync folder';

/** What a power cut meets, and the image that it leaves. */
type Cut = Readonly<{ disk: Disk; known: Known; prng: Prng; number: number; image: string }>;

/** @param isOmitted which syncs to ignore, as if the program had not made them */
export async function cutPower(
  story: Story,
  options: PartOptions,
  isOmitted: (path: string) => boolean = () => false,
): Promise<void> {
  const { events, pages } = story;
  const { folder, onProgress, tally } = options;
  const { failures } = tally;
  onProgress(`recorded ${events.length} calls and responses`);
  // In memory if possible: each image is read only once.
  const images = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : folder, 'wirewatch-power-'));
  const calls = events.filter(({ kind }) => !['answer', 'print', 'note'].includes(kind));
  tally.count('calls recorded', calls.length);
  tally.count('syncs recorded', calls.filter(isSync).length);
  tally.count('pages of the follower', pages.size);
  const disk = new Disk(story.root);
  const printed = commandsByPrint(events);
  const wanted = shareOf(options, IMAGES);
  let known = NOTHING_KNOWN;
  let number = 0;
  try {
    for (const [index, event] of events.entries()) {
      // The images are spread evenly over the record.
      for (; number < ((index + 1) / events.length) * wanted; number += 1) {
        const prng = seededPrng(options.seed, 'power image', number);
        const cut = { disk, known, prng, number, image: join(images, 'image') };
        const failure = await failureOf(cut, story, options);
        if (failure !== null)
          failures.push(
            `image ${number}, cut before call ${index} (${event.kind} ${event.path}); ${failure}`,
          );
        if (failures.length >= FAILURES_MAX) return;
        if (number % PROGRESS_EVERY === 0)
          onProgress(`${number} of ${wanted} images, ${failures.length} failures`);
      }
      if (isSync(event) && isOmitted(event.path)) tally.count('syncs left out');
      else disk.play(event);
      known = learn(known, event, story, printed);
    }
    if (failures.length === 0) failures.push(...unmetExpectations(disk, tally));
  } finally {
    rmSync(images, { recursive: true, force: true });
  }
}

/** Builds and checks an image; one that fails is kept for inspection. @returns null if everything held */
async function failureOf(cut: Cut, story: Story, options: PartOptions): Promise<string | null> {
  const { disk, number, image } = cut;
  const { tally, seed, folder } = options;
  const { content, names } = writeImage(disk, cut.prng, image);
  tally.count('images');
  if (disk.hasUnsyncedContent) tally.count(`with unsynced content: ${content} of it left`);
  if (disk.pending.length > 0) tally.count(`with unsynced names: ${names} of them left`);
  const every = shareOf(options, IMAGES) / shareOf(options, STARTS);
  const isStarted = Math.floor(number / every) !== Math.floor((number - 1) / every);
  try {
    await (isStarted ? start(cut, story, options) : check(cut, story, tally));
    return null;
  } catch (error) {
    writeImage(disk, seededPrng(seed, 'power image', number), join(folder, `image-${number}`));
    const message = error instanceof Error ? error.message : String(error);
    return `seed ${seed}; kept of the unsynced data: ${content} of the content, ${names} of the names: ${message}`;
  }
}

/** Recovers the image with the real program, and cuts the power again during the recovery. */
async function start({ image, prng, known: before }: Cut, story: Story, options: PartOptions): Promise<void> {
  const disk = new Disk(image);
  disk.load();
  const record = join(options.folder, 'record-of-start');
  await startOn(image, story, before, record);
  options.tally.count('started by the real program');
  const events = readRecord(record);
  const cuts = Array.from({ length: CUTS_A_START }, () => prng.below(events.length)).sort((a, b) => a - b);
  const again = `${image}-again`;
  let known = before;
  for (const [index, event] of events.entries()) {
    for (; cuts[0] === index; cuts.shift()) {
      writeImage(disk, prng, again);
      await checkImage(again, story, known);
      options.tally.count('cut again while it was brought back');
    }
    disk.play(event);
    known = learn(known, event, story);
  }
  const [missed] = differences(disk);
  if (missed !== undefined)
    throw new Error(`the record of a start does not match ${missed}: a call was not recorded`);
  // What the start has left holds all that was known, and the file that was dropped after the cut.
  await checkImage(image, story, known);
}

async function check({ number, image, known }: Cut, story: Story, tally: Tally): Promise<void> {
  const depth = { scrub: number % SCRUB_EVERY === 0, backup: number % BACKUP_EVERY === 0 };
  const { applied, isRebuilt } = await checkImage(image, story, known, depth);
  if (depth.scrub) tally.count('compared with the log');
  if (depth.backup && known.hasBackup) tally.count('with a backup that was read');
  if (applied > 0) tally.count('whose database was behind the log');
  if (isRebuilt) tally.count('whose database was made anew');
}

/** Failures of the test itself: calls that were not recorded, kinds of power cuts that did not occur. */
function unmetExpectations(disk: Disk, { figures }: Tally): string[] {
  const wanted = [
    ...SURVIVALS.map((left) => `with unsynced content: ${left} of it left`),
    ...SURVIVALS.map((left) => `with unsynced names: ${left} of them left`),
    'whose database was behind the log',
    'with a backup that was read',
    'compared with the log',
    'started by the real program',
    'cut again while it was brought back',
  ];
  return [
    ...differences(disk).map((path) => `the record does not match ${path}: a call was not recorded`),
    ...wanted.filter((what) => !(what in figures)).map((what) => `no image ${what}`),
  ];
}
