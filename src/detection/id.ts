/** Detection ids (contract: Detection, `id`). */
import { type ContentType, type StreamName, streamName } from './content-type.ts';

export const DETECTION_ID_PATTERN =
  '^[ti]\\.(0|[1-9][0-9]{0,14})\\.(0|[1-9][0-9]{0,14})\\.(0|[1-9][0-9]{0,14})$';

const DETECTION_ID = new RegExp(DETECTION_ID_PATTERN);

export function formatDetectionId(
  contentType: ContentType,
  subscriptionId: number,
  sourceInternalId: number,
  articleId: number,
): string {
  return `${contentType === 'image' ? 'i' : 't'}.${subscriptionId}.${sourceInternalId}.${articleId}`;
}

export function isDetectionId(text: string): boolean {
  return DETECTION_ID.test(text);
}

/** The stream in which a detection is, which its id says. @param id of {@link isDetectionId} */
export function streamOfId(id: string): StreamName {
  return streamName(Number(id.slice(2, id.indexOf('.', 2))), id.startsWith('i') ? 'image' : 'text');
}
