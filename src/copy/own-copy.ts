/** Whose copy a place has: it is given to one installation at the first write, and stays with it. */
import { hash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { contentOf, type FoundCopy, readAccessState } from '../auth/spare-copy.ts';
import { failed, Refused } from '../refused.ts';
import { openContent } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { LogDamage } from '../store/log-errors.ts';
import { keptCopies } from '../store/role.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import type { Place } from './place.ts';

export const INSTALLATION = 'installation.json';
export const SECRET = 'secret';
export type SoundAccess = Extract<FoundCopy, { kind: 'sound' }>;

const ACCESS = 'access/';
const ACCESS_NAME = /^access\/(\d{16})\.db\.zst$/;
const ACCESS_KEPT = 5;

const Installation = Type.Object({
  format: Type.Literal('wirewatch-copy'),
  version: Type.Literal(1),
  /** The id that access.db has. */
  installation: Type.String(),
  /** Random, of this copy: its place may be reached by another path later. */
  copy: Type.String(),
  /** SHA-256 of the secret, hexadecimal: it has no checksum of its own. */
  secret_sha256: Type.String(),
});

const compress = promisify(zstdCompress);
const unpack = promisify(zstdDecompress);
const sha256 = (content: Buffer) => hash('sha256', content, 'hex');
/** With a checksum, which unpacking compares. */
const pack = (content: Buffer) => compress(content, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });

export const accessName = (change: number) => `${ACCESS}${String(change).padStart(16, '0')}.db.zst`;

/** @returns the ids of the installation and of the copy; null: the place has no copy. @throws Unreachable; Refused `failed` */
export async function ownerOf(place: Place): Promise<Static<typeof Installation> | null> {
  const content = await place.read(INSTALLATION);
  if (content === null) return null;
  try {
    return Value.Parse(Installation, JSON.parse(content.toString()));
  } catch (error) {
    throw failed(`its ${INSTALLATION} is damaged, or from a newer version of Wirewatch`, { cause: error });
  }
}

/** @throws Refused `failed` where a copy was kept and none is: a share that is not mounted looks like an empty folder */
export async function refuseEmptied(place: Place, folder: DataFolder): Promise<void> {
  const { text } = place;
  const isKept = [...keptCopies(folder).values()].some(({ to }) => to === text);
  if (isKept && (await ownerOf(place)) === null)
    throw failed(
      `${text} is empty, although a copy was kept there. If it is a share or a disk, mount it. To begin a new copy there, run: wirewatch backup ${text}`,
    );
}

/**
 * Gives an empty place to this installation.
 * @param isAnew also where a copy was kept
 * @returns the id of the copy. @throws Unreachable; Refused `failed` if it belongs to another one
 */
export async function requireOwn(place: Place, folder: DataFolder, installation: string, isAnew = false) {
  if (!isAnew) await refuseEmptied(place, folder);
  const secret = readFileSync(folder.secret);
  if (secret.length !== SECRET_BYTES)
    throw failed(`the secret ${folder.secret} is damaged: expected ${SECRET_BYTES} bytes`);
  const secret_sha256 = sha256(secret);
  let owner = await ownerOf(place);
  if (owner === null) {
    if ((await place.read('access.db')) !== null) throw left(place, 'it is a data folder');
    const copy = randomBytes(8).toString('hex');
    const own = { format: 'wirewatch-copy', version: 1, installation, copy, secret_sha256 };
    await place.create(INSTALLATION, Buffer.from(`${JSON.stringify(own)}\n`));
    owner = await ownerOf(place);
  }
  if (owner?.installation !== installation) throw left(place, 'it has the copy of another installation');
  if (owner.secret_sha256 !== secret_sha256)
    throw left(place, 'its secret is another one than that of this installation');
  const there = await place.read(SECRET);
  if (there?.equals(secret)) return owner.copy;
  await place.delete(SECRET);
  await place.create(SECRET, secret);
  return owner.copy;
}

export const left = ({ text }: Place, reason: string): Refused =>
  failed(`${text} is left as it is: ${reason}. Name another place for the copy, or move this one away.`);

/** The secret in a copy. @throws Unreachable; Refused `failed` */
export async function readCopiedSecret(place: Place): Promise<Buffer> {
  const secret = await place.read(SECRET);
  if (secret === null) throw failed('it has no secret');
  if (sha256(secret) !== (await ownerOf(place))?.secret_sha256) throw failed('its secret is damaged');
  return secret;
}

/** The number of the newest change of access.db in a copy; 0: it has none. @throws Unreachable */
export async function copiedChange(place: Place): Promise<number> {
  const names = await place.list(ACCESS, '');
  return Math.max(0, ...names.map((name) => Number(ACCESS_NAME.exec(name)?.[1] ?? 0)));
}

/** @param number of a change; without it, the newest. @throws Unreachable; Refused `failed`; LogDamage */
export async function readCopiedAccess(place: Place, number?: number) {
  const change = number ?? (await copiedChange(place));
  const packed = change === 0 ? null : await place.read(accessName(change));
  if (packed === null) throw failed('it has no access.db');
  try {
    using db = openContent(await unpack(packed));
    const state = readAccessState(db);
    if (state?.change === change) return { state, content: contentOf(db) };
  } catch (error) {
    throw new LogDamage(`its ${accessName(change)} is damaged`, { cause: error });
  }
  throw new LogDamage(`its ${accessName(change)} has another state than its name says`);
}

const SELECT_LAST_AUDITED = 'SELECT entry, checksum FROM audit ORDER BY entry DESC LIMIT 1';
const SELECT_AUDITED = 'SELECT 1 FROM audit WHERE entry = :entry AND checksum = :checksum';

/**
 * Whoever restores a copy, and writes there while the machine before it still does, would write over its revocations.
 * @param content of access.db
 * @throws Unreachable; Refused `failed` if the copy has changes of accounts and keys that this state does not come from
 */
export async function requireEarlierAccess(place: Place, content: Buffer): Promise<void> {
  const copied = await soundAccess(place);
  if (copied === null) return;
  using there = openContent(copied.content);
  using here = openContent(content);
  const last = there.prepare<[], object>(SELECT_LAST_AUDITED).get();
  if (last !== undefined && here.prepare(SELECT_AUDITED).get(last) === undefined)
    throw left(
      place,
      `it has changes of accounts and keys that this machine lacks. To take them over, run: wirewatch restore ${place.text} --replace`,
    );
}

/** The newest state in a copy; null: it has none, or a damaged one, which is written again. @throws Unreachable */
const soundAccess = (place: Place) =>
  readCopiedAccess(place).catch((error) => {
    if (error instanceof LogDamage || error instanceof Refused) return null;
    throw error;
  });

/** Writes `access.db` to a copy, and deletes old states. @throws Unreachable; Refused `failed` if the copy has a later state */
export async function writeAccess(place: Place, { state: { change }, content }: SoundAccess): Promise<void> {
  if ((await soundAccess(place)) === null) await place.delete(accessName(change));
  await place.create(accessName(change), await pack(content));
  const there = await readCopiedAccess(place);
  if (!there.content.equals(content))
    throw left(place, 'its accounts and keys are of another state of this installation');
  const names = await place.list(ACCESS, '');
  for (const name of names.slice(0, -ACCESS_KEPT)) await place.delete(name);
}
