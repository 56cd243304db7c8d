/** Opens the place of a copy, whichever kind it is, and tries what a copy needs of it. */
import { randomBytes } from 'node:crypto';
import { failed } from '../refused.ts';
import { isBucket, type Place, type PlaceSettings } from './place.ts';

/** Asks nothing of the place: {@link openTried} does. @param to a folder, or `s3://bucket/prefix` @throws Refused `failed` */
export async function openPlace(to: string, settings: PlaceSettings): Promise<Place> {
  if (isBucket(to)) return (await import('./s3-place.ts')).openS3Place(to, settings);
  return (await import('./folder-place.ts')).openFolderPlace(to);
}

/** Opens a place to write there. @throws Refused `failed` if it cannot do what a copy needs; Unreachable */
export const openTried = async (to: string, settings: PlaceSettings): Promise<Place> =>
  tryPlace(await openPlace(to, settings));

/**
 * Creates a small object below `try/`, creates it once more, lists, reads and deletes it.
 * @throws Refused `failed` if the place does something else than it must; Unreachable, or Refused, as its operations do
 */
export async function tryPlace(place: Place): Promise<Place> {
  const name = `try/${randomBytes(8).toString('hex')}`;
  const content = randomBytes(32);
  const wrong = (what: string) => failed(`cannot keep a copy in ${place.text}: ${what}`);
  if (!(await place.create(name, content)))
    throw wrong('it says that an object exists which was never created.');
  try {
    const twice = await place.create(name, randomBytes(32));
    const found = await place.read(name);
    if (twice || found?.equals(content) === false)
      throw wrong(
        'it creates an object that exists (it ignores If-None-Match), so two machines could write at once. Use a newer release of the S3 service, or another one.',
      );
    if (found === null || !(await place.list('try/', '')).includes(name))
      throw wrong('an object that was just created cannot be read, or is not listed.');
  } finally {
    await place.delete(name);
  }
  if ((await place.read(name)) !== null) throw wrong('an object that was just deleted can still be read.');
  return place;
}
