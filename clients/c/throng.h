// A client of a throng server: see README.md. Written by cbindgen from src; see tests/header.rs for how to generate it again.

#ifndef THRONG_H
#define THRONG_H

#include <stddef.h>
#include <stdint.h>

// Version of this interface. throng_abi returns that of the library: if the two differ, do not use the library with this header.
#define THRONG_ABI 2

// Result of a call. 0 and above: success. Below 0: failure; nothing has changed unless documented.
enum ThrongStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  THRONG_STATUS_OK = 0,
  // Success, and the requested item does not exist.
  THRONG_STATUS_EMPTY = 1,
  // A required pointer is null.
  THRONG_STATUS_NULL_POINTER = -1,
  // A number or a length is out of range.
  THRONG_STATUS_BAD_ARGUMENT = -2,
  // The token is invalid.
  THRONG_STATUS_BAD_TOKEN = -3,
  // The system cannot open a socket.
  THRONG_STATUS_NO_SOCKET = -4,
  // The server cannot be reached, or does not accept the token: the connection was never made.
  THRONG_STATUS_NOT_CONNECTED = -5,
  // The server has ended the connection. The event THRONG_EVENT_KIND_CLOSED contains the reason; throng_error contains it as
  // well, or the reason why a login was refused.
  THRONG_STATUS_CLOSED = -6,
  // Nothing was received from the server for too long: throng_resume continues. Or the server restarted: throng_reconnect with
  // another token may help.
  THRONG_STATUS_LOST = -7,
  // The server speaks another version of the protocol: throng_error has both versions.
  THRONG_STATUS_PROTOCOL_ERROR = -8,
  // The send queue is full, or a message is too long.
  THRONG_STATUS_SEND_QUEUE_FULL = -9,
  // The server is full. The token was not used: throng_reconnect with the same one may help later.
  THRONG_STATUS_FULL = -11,
  // A bug in the library: this client can only be destroyed.
  THRONG_STATUS_PANICKED = -10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ThrongStatus ThrongStatus;
#else
typedef int32_t ThrongStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Kind of an event.
enum ThrongEventKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The client waits in the login queue; number: its position, 1 is next.
  THRONG_EVENT_KIND_QUEUED = 1,
  // The player is logged in, or the session is resumed; player: its id.
  THRONG_EVENT_KIND_WELCOMED = 2,
  // The session continues over this connection; number: 1 if the client keeps its state, 0 if everything is sent again.
  THRONG_EVENT_KIND_RESUMED = 3,
  // The session could not be resumed; the player logs in again.
  THRONG_EVENT_KIND_RESUME_FAILED = 4,
  // The player enters this scene, of x by y metres, which is sent after throng_ready; at once without requires_ready.
  THRONG_EVENT_KIND_LOADING = 5,
  // The player is in this scene, of x by y metres. All objects of the previous scene are gone, without events of their own.
  THRONG_EVENT_KIND_SCENE_ENTERED = 6,
  // The player controls no object any more, and no object is in view.
  THRONG_EVENT_KIND_SCENE_LEFT = 7,
  // The player controls this object.
  THRONG_EVENT_KIND_CONTROL_CHANGED = 8,
  // An object entered the view; number: its kind.
  THRONG_EVENT_KIND_ENTERED = 9,
  // An object left the view.
  THRONG_EVENT_KIND_LEFT = 10,
  // An attribute of an object in view was changed or removed; number: the attribute.
  THRONG_EVENT_KIND_ATTRIBUTE_CHANGED = 11,
  // A one-time event of the game: length bytes as the game defines them; number: 1 if it is about an object.
  THRONG_EVENT_KIND_ANNOUNCED = 12,
  // The server's position of the controlled object differs from the predicted one by x and y metres; number: the input.
  THRONG_EVENT_KIND_CORRECTED = 13,
  // The rate of simulated time has changed; number: percent of real time.
  THRONG_EVENT_KIND_TIME_RATE = 14,
  // The server has ended the session, and the end of the connection follows; number: the reason. 1 ended, 2 replaced, 3 slow_consumer, 4
  // stopping, 5 kicked, 6 banned, 7 idle, 8 flooding, 9 refused, 10 timed_out, 11 full, 12 resumed, 13 unavailable, 14 lost; 0 is an
  // unknown reason. throng_close_reason has a sentence for each.
  THRONG_EVENT_KIND_CLOSED = 15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ThrongEventKind ThrongEventKind;
#else
typedef uint32_t ThrongEventKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The client of a player.
typedef struct ThrongClient ThrongClient;

// Settings of a client. throng_settings returns the defaults.
typedef struct ThrongClientSettings {
  // The player that the token must be for; 0 accepts any player.
  uint64_t player;
  // Proof of the identity, as the game defines it: credential_length bytes, at most 512. Null if it is empty, because the token contains
  // the identity.
  const uint8_t *credential;
  // Length of the credential, in bytes.
  size_t credential_length;
  // Time in which the shown part of a position correction decreases to a third, in seconds. 0 shows corrections at once.
  float smoothing_s;
  // Not 0: scenes are sent only after throng_ready.
  uint8_t requires_ready;
} ThrongClientSettings;

// An event. Fields that its kind does not use are 0.
typedef struct ThrongEvent {
  // Player id.
  uint64_t player;
  // Content of an announcement; valid until the next throng_next_event.
  const uint8_t *bytes;
  // Length of the content, in bytes.
  size_t length;
  // Kind of the event.
  ThrongEventKind kind;
  // Object id in the scene.
  uint32_t id;
  // Generation: how often that id was assigned before.
  uint32_t generation;
  // Scene id.
  uint32_t scene;
  // A number whose meaning depends on the kind.
  uint32_t number;
  // Metres to the right.
  float x;
  // Metres down.
  float y;
} ThrongEvent;

// The state of a client.
typedef struct ThrongClientState {
  // The latest tick received from the server.
  uint64_t tick;
  // The server's current tick, with its fraction; 0 while unknown.
  double server_tick;
  // Smoothed round trip time, including the server's tick, in seconds; 0 before the first measurement.
  double round_trip_s;
  // Number of dropped events, because the game did not read them.
  uint64_t missed_events;
  // Estimated share of this client's packets that are lost: 0 to 1.
  float loss;
  // Length of a tick, in seconds; 0 while unknown.
  float tick_s;
  // Scene of the player, if is_in_scene.
  uint32_t scene;
  // The scene's width, in metres.
  float width_m;
  // The scene's height, in metres.
  float height_m;
  // Id of the controlled object, if has_own.
  uint32_t own_id;
  // Generation: how often that id was assigned before.
  uint32_t own_generation;
  // Number of the last input that the server has handled, modulo 65,536.
  uint16_t last_input;
  // Rate of simulated time, in percent of real time.
  uint8_t time_percent;
  // 1 if the connection is open; 0 while connecting, as long as throng_update succeeds.
  uint8_t is_connected;
  // 1 if the player is in a scene.
  uint8_t is_in_scene;
  // 1 if the player controls an object.
  uint8_t has_own;
} ThrongClientState;

// An object in view.
typedef struct ThrongObject {
  // Object id in the scene.
  uint32_t id;
  // Generation: how often that id was assigned before.
  uint32_t generation;
  // Shown position at the last throng_update, in metres to the right.
  float x;
  // The same, in metres down.
  float y;
  // Number of its kind.
  uint16_t kind;
  // Heading, in 256ths of a turn: 0 is +x, 64 is +y.
  uint8_t heading;
  // Floor, as the game counts them.
  uint8_t floor;
  // 1 if the player controls it; then its position is predicted ahead of the server.
  uint8_t is_own;
} ThrongObject;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the library's interface.
uint32_t throng_abi(void);

// Writes the error message of the last failed call of this thread: UTF-8 with a terminating 0, truncated to capacity bytes in total.
// Returns the length of the message without the 0. With a null pointer or no capacity it writes nothing.
//
// # Safety
// capacity bytes can be written to text.
size_t throng_error(char *text,
                    size_t capacity);

// A sentence for a reason of THRONG_EVENT_KIND_CLOSED: UTF-8 with a terminating 0, valid as long as the library is loaded.
const char *throng_close_reason(uint8_t reason);

// Returns the default settings: the player of the token, no credential, and scenes are sent without throng_ready.
struct ThrongClientSettings throng_settings(void);

// Starts to connect with an unused token of 2,048 bytes from the game's login service. throng_update reports whether the server
// accepts it. Writes a client, to be freed with throng_destroy, or null if the call fails.
//
// # Safety
// length bytes can be read from token, and credential_length bytes from the settings' credential.
ThrongStatus throng_connect(const uint8_t *token,
                            size_t length,
                            const struct ThrongClientSettings *settings,
                            struct ThrongClient **client);

// Connects again with another token. Client state stays, and the session resumes if the server still has it.
//
// # Safety
// length bytes can be read from token.
ThrongStatus throng_reconnect(struct ThrongClient *client,
                              const uint8_t *token,
                              size_t length);

// Connects again with the same token after the connection was lost (THRONG_STATUS_LOST), and resumes the session. The server allows it as
// long as it keeps the session; afterwards throng_reconnect with another token is needed.
ThrongStatus throng_resume(struct ThrongClient *client);

// Continues over another local port, which is necessary after a change of network.
ThrongStatus throng_rebind(struct ThrongClient *client);

// Logs out, and frees a client. Does nothing for null.
void throng_destroy(struct ThrongClient *client);

// Receives what has arrived, and sends pending messages. Call it once per frame, with the time of a monotonic clock in seconds,
// which may start at any value from 0 on. After the connection has ended, every call returns that status; earlier events can still
// be read.
ThrongStatus throng_update(struct ThrongClient *client,
                           double now_s);

// Writes the oldest event that was not returned yet, or returns THRONG_STATUS_EMPTY if there is none. Up to 65,536 events are
// kept; beyond that, the oldest are dropped.
ThrongStatus throng_next_event(struct ThrongClient *client,
                               struct ThrongEvent *event);

// The controlled object stands still from now on, with this heading in 256ths of a turn: 0 is +x, 64 is +y. Each bit of buttons is a
// pressed button, as the game defines them.
ThrongStatus throng_stand(struct ThrongClient *client,
                          uint8_t heading,
                          uint32_t buttons);

// The controlled object walks in a direction from now on, in 256ths of a turn, one step per tick.
ThrongStatus throng_walk(struct ThrongClient *client,
                         uint8_t direction,
                         uint8_t heading,
                         uint32_t buttons);

// The controlled object moves to this position, in metres, which the game has chosen; the server validates the distance.
ThrongStatus throng_move(struct ThrongClient *client,
                         float x,
                         float y,
                         uint8_t heading,
                         uint32_t buttons);

// Sets the map for the prediction of the controlled object: it then stops at walls like on the server. One byte per tile of tile_m metres,
// row by row: 0 is free. Call it again in each scene.
//
// # Safety
// width times height bytes can be read from blocked.
ThrongStatus throng_set_ground(struct ThrongClient *client,
                               const uint8_t *blocked,
                               uint32_t width,
                               uint32_t height,
                               float tile_m);

// Reports that the game has loaded the scene, so that the server sends it.
// Required with requires_ready.
ThrongStatus throng_ready(struct ThrongClient *client, uint32_t scene);

// Sends a message of the game, of the type that the server has registered with this number. It arrives once and in order.
//
// # Safety
// length bytes can be read from bytes.
ThrongStatus throng_send(struct ThrongClient *client,
                         uint16_t kind,
                         const uint8_t *bytes,
                         size_t length);

// Writes the state of the client.
ThrongStatus throng_state(const struct ThrongClient *client, struct ThrongClientState *state);

// Writes the objects in view by ascending id, at most capacity of them, and their total number.
//
// # Safety
// capacity objects can be written to objects.
ThrongStatus throng_objects(const struct ThrongClient *client,
                            struct ThrongObject *objects,
                            size_t capacity,
                            size_t *count);

// Writes an object in view, or returns THRONG_STATUS_EMPTY if none has this id.
ThrongStatus throng_object(const struct ThrongClient *client,
                           uint32_t id,
                           struct ThrongObject *object);

// Writes the address and length of an object's attribute value, or returns THRONG_STATUS_EMPTY if it has no such attribute. The address is
// valid until the next call that may change the client: any call except those with a const client.
ThrongStatus throng_attribute(const struct ThrongClient *client,
                              uint32_t id,
                              uint16_t attribute,
                              const uint8_t **bytes,
                              size_t *length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* THRONG_H */
