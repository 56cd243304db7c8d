/**
 * Where a copy lies: a folder or an S3 object store. Nothing else knows which of the two it is.
 *
 * A place holds objects that never change once they exist. Whether one may be created is decided by the place, so that two
 * machines never both believe that they wrote it.
 */

/** Names have `/` between their parts, each of `a-z 0-9 . _ -`. */
export interface Place {
  /** As the operator wrote it, for messages. */
  readonly text: string;
  /**
   * Creates an object, whole and durable, unless one of that name exists.
   * @returns whether this call created it
   * @throws Unreachable if it is not known whether it did
   */
  create(name: string, content: Uint8Array): Promise<boolean>;
  /**
   * The names that begin with `prefix` and come after `after`, in the order of their characters.
   * @param after '' for all
   */
  list(prefix: string, after: string): Promise<string[]>;
  /** @returns null if there is no such object */
  read(name: string): Promise<Buffer | null>;
  /** Deletes an object, if it exists. */
  delete(name: string): Promise<void>;
}

/** The place cannot be reached now, or its answer is not known: trying again may help. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** The settings of `[copy]` that say how a place is reached. */
export interface PlaceSettings {
  /** Of an S3 service other than Amazon's; null: Amazon's. */
  readonly endpoint: string | null;
  readonly region: string;
  /** A file with the access key in its first line and the secret in its second; null: the usual environment variables. */
  readonly credentials: string | null;
}

/**
 * @param to a folder, absolute, or `s3://bucket/prefix`
 * @throws Refused `failed`
 */
export async function openPlace(to: string, settings: PlaceSettings): Promise<Place> {
  if (!to.startsWith('s3://')) {
    const { openFolderPlace } = await import('./folder-place.ts');
    return openFolderPlace(to);
  }
  const { openS3Place } = await import('./s3-place.ts');
  return openS3Place(to, settings);
}
