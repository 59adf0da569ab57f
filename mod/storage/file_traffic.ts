/** Counters of uploaded and downloaded files since the server started. */
export class FileTraffic {
  uploads = 0;
  uploadedBytes = 0;
  /** Responses with contents, including thumbnails. */
  reads = 0;
  /** Bytes sent. An aborted response counts in full. */
  readBytes = 0;

  uploaded(bytes: number): void {
    this.uploads++;
    this.uploadedBytes += bytes;
  }

  read(bytes: number): void {
    this.reads++;
    this.readBytes += bytes;
  }
}
