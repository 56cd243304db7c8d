/** Tries what a copy needs of its place. */
import { randomBytes } from 'node:crypto';
import { failed } from '../refused.ts';
import type { Place } from './place.ts';

/**
 * Creates a small object below `try/`, creates it once more, lists, reads and deletes it.
 * @throws Refused `failed` if the place does something else than it must; Unreachable, or Refused, as its operations do
 */
export async function tryPlace(place: Place): Promise<void> {
  const name = `try/${randomBytes(8).toString('hex')}`;
  const content = randomBytes(32);
  const wrong = (what: string) => failed(`cannot keep a copy in ${place.text}: ${what}`);
  if (!(await place.create(name, content)))
    throw wrong('it says that an object exists which was never created.');
  try {
    const twice = await place.create(name, randomBytes(32));
    const found = await place.read(name);
    if (twice || found?.equals(content) === false) {
      const why =
        'it creates an object that exists (it ignores If-None-Match), so two machines could write at once';
      throw wrong(`${why}. Use a newer release of the S3 service, or another one.`);
    }
    if (found === null) throw wrong('an object that was just created cannot be read.');
    if (!(await place.list('try/', '')).includes(name))
      throw wrong('an object that was just created is not listed.');
  } catch (error) {
    await place.delete(name).catch(() => {});
    throw error;
  }
  await place.delete(name);
  if ((await place.read(name)) !== null) throw wrong('an object that was just deleted can still be read.');
}
