/** What a restore starts from, and `verify SRC` checks: a copy, or another data folder. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { findAccess } from '../auth/spare-copy.ts';
import { entriesAfter } from '../log/log-reader.ts';
import { LogWriter } from '../log/log-writer.ts';
import { listSegments } from '../log/segment.ts';
import { failed, Refused, reasonOf } from '../refused.ts';
import { type DataFolder, dataFolder, syncFile, syncFolder, writeWhole } from '../store/folder.ts';
import { isLogError } from '../store/log-errors.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { VERSION } from '../version.ts';
import { entriesIn, findLog } from './copied-log.ts';
import { openPlace } from './open-place.ts';
import { ownerOf, readCopiedAccess, readCopiedSecret } from './own-copy.ts';
import { isBucket, type Place, type PlaceSettings } from './place.ts';

type OnProgress = (what: string, done: number, total: number) => void;

export interface Source {
  /** As the operator named it; of a folder, the whole path. */
  readonly text: string;
  /**
   * Writes its access.db, secret and log into an empty folder.
   * @returns the id of the copy; null: it is a data folder
   * @throws Refused `failed`, LogDamage, whose text follows the name of the source; Unreachable
   */
  load(stage: DataFolder, onProgress: OnProgress): Promise<string | null>;
  /** Reads all of it. */
  verify(onProgress: OnProgress): Promise<VerifiedSource>;
}

export interface VerifiedSource {
  /** The number of the last entry of the log. */
  readonly entries: number;
  /** What is wrong with it, in words; empty if nothing is. */
  readonly findings: readonly string[];
}

/**
 * @param given a folder, or `s3://bucket/prefix`
 * @throws Refused `failed` if there is no copy, or it cannot be read
 */
export async function openSource(given: string, settings: PlaceSettings): Promise<Source> {
  const isFolder = !isBucket(given);
  const text = isFolder ? resolve(given) : given;
  try {
    if (isFolder) {
      if (!statSync(text).isDirectory()) throw failed(`${text} cannot be a copy: a copy is a folder`);
      if (existsSync(dataFolder(text).access)) return ofDataFolder(text);
    }
    const place = await openPlace(text, settings);
    if ((await ownerOf(place)) === null) throw new Error('it contains no copy');
    return ofCopy(place);
  } catch (error) {
    if (error instanceof Refused && error.code !== 'failed') throw error;
    throw failed(`cannot read the copy ${text}: ${reasonOf(error, text)}.`, { cause: error });
  }
}

export function ofCopy(place: Place): Source {
  return {
    text: place.text,
    async load(stage, onProgress) {
      // In this order: what access.db says is in a log that is read later.
      const { content } = await readCopiedAccess(place);
      writeWhole(stage.access, content);
      writeWhole(stage.secret, await readCopiedSecret(place));
      mkdirSync(stage.log, { mode: 0o700 });
      const { objects } = await findLog(place);
      const last = { entry: (objects[0]?.first ?? 1) - 1, id: '' };
      const log = new LogWriter({ folder: stage.log, program: VERSION }, { last, segment: null });
      for await (const { frame, commit } of entriesIn(place, objects, progressOf(objects, onProgress)))
        log.adopt(frame.bytes, commit);
      log.closeDurably();
      return (await ownerOf(place))?.copy ?? null;
    },
    async verify(onProgress) {
      const findings: string[] = [];
      let entries = 0;
      await noting(findings, () => readCopiedAccess(place));
      await noting(findings, () => readCopiedSecret(place));
      await noting(findings, async () => {
        const { objects } = await findLog(place);
        for await (const { commit } of entriesIn(place, objects, progressOf(objects, onProgress)))
          entries = commit?.entry ?? entries;
      });
      return { entries, findings };
    },
  };
}

function progressOf({ length }: readonly unknown[], onProgress: OnProgress): (done: number) => void {
  return (done) => onProgress('reading the copy', done, length);
}

async function noting(findings: string[], work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isLogError(error) && !(error instanceof Refused)) throw error;
    findings.push(reasonOf(error));
  }
}

function ofDataFolder(path: string): Source {
  const from = dataFolder(path);
  return {
    text: path,
    async load(stage, onProgress) {
      // Of access.db, with what its write-ahead log has, and from its spare copy where it is damaged.
      const found = findAccess(from);
      if (found.kind !== 'sound')
        throw failed(`its access.db is ${found.kind === 'missing' ? 'missing' : `damaged: ${found.reason}`}`);
      writeWhole(stage.access, found.content);
      const segments = listSegments(from.log);
      mkdirSync(stage.log, { mode: 0o700 });
      for (const [done, segment] of segments.entries()) {
        onProgress('copying the log', done, segments.length);
        const copy = join(stage.log, basename(segment.path));
        copyFileSync(segment.path, copy);
        syncFile(copy);
      }
      syncFolder(stage.log);
      writeFileSync(stage.secret, secretIn(from), { mode: 0o600, flush: true });
      return null;
    },
    async verify(onProgress) {
      const findings: string[] = [];
      let entries = 0;
      await noting(findings, async () => {
        const found = findAccess(from);
        if (found.kind !== 'sound') throw failed('its access.db is damaged');
      });
      await noting(findings, async () => secretIn(from));
      await noting(findings, async () => {
        for (const { part, bytes } of entriesAfter(from.log, null)) {
          // Unpacks them: a matching checksum does not prove that they can be read.
          void part.lines;
          if (part.kind === 'commit') entries = part.commit.entry;
          onProgress('reading the log', bytes, 0);
        }
      });
      return { entries, findings };
    },
  };
}

/** @throws Refused `failed` */
function secretIn({ secret }: DataFolder): Buffer {
  if (!existsSync(secret)) throw failed('it has no secret');
  const content = readFileSync(secret);
  if (content.length !== SECRET_BYTES) throw failed('its secret is damaged');
  return content;
}
