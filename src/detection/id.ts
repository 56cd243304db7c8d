/** Detection ids. */
import { CONTENT_TYPES, type ContentType, type StreamName, streamName, TYPE_RULES } from './content-type.ts';

/** @param letter that of the content type, or a class of letters */
export const detectionIdPattern = (letter: string) => `^${letter}${'\\.(0|[1-9][0-9]{0,14})'.repeat(3)}$`;

const LETTERS = CONTENT_TYPES.map((type) => TYPE_RULES[type].id_letter).join('');
export const DETECTION_ID_PATTERN = detectionIdPattern(`[${LETTERS}]`);

const DETECTION_ID = new RegExp(DETECTION_ID_PATTERN);

export const formatDetectionId = (type: ContentType, subscription: number, source: number, article: number) =>
  `${TYPE_RULES[type].id_letter}.${subscription}.${source}.${article}`;

export const isDetectionId = (text: string) => DETECTION_ID.test(text);

/** The stream in which a detection is, which its id says. @param id of {@link isDetectionId} */
export function streamOfId(id: string): StreamName {
  const contentType = CONTENT_TYPES.find((type) => TYPE_RULES[type].id_letter === id[0]) ?? 'text';
  return streamName(Number(id.slice(2, id.indexOf('.', 2))), contentType);
}
