/** Opens the place of a copy, whichever kind it is. */
import { isBucket, type Place, type PlaceSettings } from './place.ts';
import { tryPlace } from './try-place.ts';

/**
 * Nothing is asked of the place yet: tryPlace (try-place.ts) does that.
 * @param to a folder, absolute, or `s3://bucket/prefix`
 * @throws Refused `failed`
 */
export async function openPlace(to: string, settings: PlaceSettings): Promise<Place> {
  if (!isBucket(to)) {
    const { openFolderPlace } = await import('./folder-place.ts');
    return openFolderPlace(to);
  }
  const { openS3Place } = await import('./s3-place.ts');
  return openS3Place(to, settings);
}

/** @param copy the section `[copy]` */
export function placeSettings(copy: {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: string;
}): PlaceSettings {
  const orNull = (text: string) => (text === '' ? null : text);
  return { endpoint: orNull(copy.endpoint), region: copy.region, credentials: orNull(copy.credentials) };
}

/** Opens a place to write there. @throws Refused `failed` if it cannot do what a copy needs; Unreachable */
export async function openTried(to: string, settings: PlaceSettings): Promise<Place> {
  const place = await openPlace(to, settings);
  await tryPlace(place);
  return place;
}
