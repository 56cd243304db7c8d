/**
 * Where a copy lies: a folder or an S3 object store. Nothing else knows which of the two it is.
 *
 * A place holds objects that never change once they exist. Whether one may be created is decided by the place, so that two
 * machines never both believe that they wrote it.
 */
import { join, sep } from 'node:path';

/** Names are those that {@link isName} accepts. */
export interface Place {
  /** The place as the operator wrote it, for messages. */
  readonly text: string;
  /**
   * Creates an object, whole and durable, unless one of that name exists.
   * @returns whether this call created it
   * @throws Unreachable if it is not known whether it did; Refused `failed` if the place cannot decide it
   */
  create(name: string, content: Uint8Array): Promise<boolean>;
  /** The names that begin with `prefix`, after `after` ('': all), in the order of their characters. */
  list(prefix: string, after: string): Promise<string[]>;
  /** @returns null if there is no such object */
  read(name: string): Promise<Buffer | null>;
  /** Deletes an object, if it exists. */
  delete(name: string): Promise<void>;
}

export const isBucket = (to: string) => to.startsWith('s3://');

/** A prefix has no characters that URLs or XML write in another way. */
export const BUCKET_ADDRESS = /^s3:\/\/([A-Za-z0-9][\w.-]+)(?:\/(\w[\w.-]*(?:\/\w[\w.-]*)*)?)?\/?$/;

/** The folder of a place; null: it is a bucket, or none is set. */
export const placeFolder = (to: string) => (to === '' || isBucket(to) ? null : to);

/**
 * Which folder of an installation has a place in it that would harm it, since ingest moves files away, or it would be among
 * the installation's own; null: none.
 * @param to absolute, or a bucket
 */
export function folderAround(to: string, { data, drop }: { data: string; drop: string }): string | null {
  const isIn = (folder: string) => to === folder || to.startsWith(folder + sep);
  if (isIn(drop)) return 'drop';
  return to === data || isIn(join(data, 'log')) ? 'data' : null;
}

/** The place cannot be reached now, or its answer is not known: trying again may help. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/**
 * The settings of `[copy]` that say how a bucket is reached: `endpoint`, the address of an S3 service ('': Amazon's), and
 * `credentials`, a file with the access key and the secret, a line each ('': the usual environment variables).
 */
export type PlaceSettings = Readonly<Record<'endpoint' | 'region' | 'credentials', string>>;

/** Whether a text can name an object: parts with `/` between them, each of `a-z 0-9 . _ -`, none with a dot first. */
export const isName = (text: string) => /^[a-z0-9_-][a-z0-9._-]*(?:\/[a-z0-9_-][a-z0-9._-]*)*$/.test(text);
