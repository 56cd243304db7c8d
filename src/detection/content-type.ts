/** The two kinds of agency item, the exports that report them, and the name of a stream. */

export const CONTENT_TYPES = ['text', 'image'] as const;
export type ContentType = (typeof CONTENT_TYPES)[number];

export const EXPORT_NAMES = ['newswire', 'imagewire'] as const;
export type ExportName = (typeof EXPORT_NAMES)[number];

export const CONTENT_TYPE_OF_EXPORT: Readonly<Record<ExportName, ContentType>> = {
  newswire: 'text',
  imagewire: 'image',
};

export const EXPORT_OF_CONTENT_TYPE: Readonly<Record<ContentType, ExportName>> = {
  text: 'newswire',
  image: 'imagewire',
};

export const MATCH_TYPES: Readonly<Record<ContentType, string>> = {
  text: 'sentence_fingerprint',
  image: 'image_fingerprint',
};

export function isContentType(value: string): value is ContentType {
  return value === 'text' || value === 'image';
}

export function isExportName(value: string): value is ExportName {
  return value === 'newswire' || value === 'imagewire';
}

/** The greatest subscription, publisher or article number (contract: 999,999,999,999,999). */
export const NUMBER_MAX = 999_999_999_999_999;

/** A stream, one subscription's detections of one content type: `7001:text`. */
export type StreamName = `${number}:${ContentType}`;

export function streamName(subscriptionId: number, contentType: ContentType): StreamName {
  return `${subscriptionId}:${contentType}`;
}

/** The reverse of {@link streamName}. */
export function streamParts(stream: StreamName): { subscription_id: number; content_type: ContentType } {
  const [id, type = ''] = stream.split(':');
  if (!isContentType(type)) throw new Error(`${stream} names no stream`);
  return { subscription_id: Number(id), content_type: type };
}
