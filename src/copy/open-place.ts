/** Opens the place of a copy, whichever kind it is. */
import type { Place, PlaceSettings } from './place.ts';

/**
 * Nothing is asked of the place yet: tryPlace (try-place.ts) does that.
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
