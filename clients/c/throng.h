// A client of a throng server: see README.md. Written by cbindgen from src; tests/header.rs says how to write it anew.

#ifndef THRONG_H
#define THRONG_H

#include <stddef.h>
#include <stdint.h>

// The number of this interface. throng_abi gives the library's: where the two differ, it must not be used by this header.
#define THRONG_ABI 1

// How a call went: 0 and above it did, below 0 it did not, and nothing changed but where that is said.
enum ThrongStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  THRONG_STATUS_OK = 0,
  // Done, and there is none of what was asked for.
  THRONG_STATUS_NOTHING = 1,
  // A pointer is null that must not be.
  THRONG_STATUS_NULL_POINTER = -1,
  // A number or a length is not one that may be.
  THRONG_STATUS_BAD_ARGUMENT = -2,
  // What is to be a token is none.
  THRONG_STATUS_BAD_TOKEN = -3,
  // The system has no socket.
  THRONG_STATUS_NO_SOCKET = -4,
  // The server cannot be reached, is full, or does not take the token: there never was a connection.
  THRONG_STATUS_NOT_CONNECTED = -5,
  // The server ended the connection; the event THRONG_EVENT_KIND_CLOSED says why.
  THRONG_STATUS_CLOSED = -6,
  // Nothing came from the server for too long. throng_reconnect with another token may help.
  THRONG_STATUS_LOST = -7,
  // What the server says makes no sense: it is of another version.
  THRONG_STATUS_NOT_UNDERSTOOD = -8,
  // More waits to be sent than may, or a message is too long.
  THRONG_STATUS_BEHIND = -9,
  // A fault of the library: this client is of no use any more, and may only be destroyed.
  THRONG_STATUS_PANICKED = -10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ThrongStatus ThrongStatus;
#else
typedef int32_t ThrongStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What happened.
enum ThrongEventKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The server is full, or lets nobody in for now; number: how many go in before this client and with it.
  THRONG_EVENT_KIND_QUEUED = 1,
  // The player is logged in, or back; player: who it is.
  THRONG_EVENT_KIND_WELCOMED = 2,
  // The session goes on over this connection; number: 1 where what was known before still holds, 0 where all is told anew.
  THRONG_EVENT_KIND_RESUMED = 3,
  // The session that was to go on is over, and the player logs in anew.
  THRONG_EVENT_KIND_NOT_RESUMED = 4,
  // The player is to be in this scene, of x by y metres, and is told of it after throng_ready; at once without waits_for_ready.
  THRONG_EVENT_KIND_LOADING = 5,
  // The player is in this scene, of x by y metres; all that was in sight before is not any more, without an event of its own.
  THRONG_EVENT_KIND_IN_SCENE = 6,
  // The player controls nothing any more, and nothing is in sight.
  THRONG_EVENT_KIND_OUT_OF_SCENE = 7,
  // The player controls this object.
  THRONG_EVENT_KIND_CONTROLS = 8,
  // An object came into sight; number: its kind's.
  THRONG_EVENT_KIND_ENTERED = 9,
  // An object is out of sight.
  THRONG_EVENT_KIND_LEFT = 10,
  // An attribute of an object in sight has another value, or is gone; number: the attribute's.
  THRONG_EVENT_KIND_CHANGED = 11,
  // Something happens once: length bytes as the game defines them; number: 1 where it is about an object.
  THRONG_EVENT_KIND_ANNOUNCED = 12,
  // The server has the own object elsewhere than it was walked, by x and y metres; number: after which input.
  THRONG_EVENT_KIND_CORRECTED = 13,
  // Simulated time passes at another pace; number: in percent of real time.
  THRONG_EVENT_KIND_TIME_RATE = 14,
  // The server ended the session, and the connection's end follows; number: why. 1 ended, 2 replaced, 3 behind, 4 stopping,
  // 5 kicked, 6 banned, 7 idle, 8 flooding, 9 refused, 10 late, 11 full, 12 resumed, 13 unavailable; 0 is a reason that is not known.
  THRONG_EVENT_KIND_CLOSED = 15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ThrongEventKind ThrongEventKind;
#else
typedef uint32_t ThrongEventKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A player's program at one server.
typedef struct ThrongClient ThrongClient;

// How a client is. throng_settings fills it in.
typedef struct ThrongSettings {
  // Who it says it is.
  uint64_t player;
  // What proves it, as the game defines it: credential_length bytes, at most 512. Null with none, where the token says who it is.
  const uint8_t *credential;
  // How long the credential is, in bytes.
  size_t credential_length;
  // How fast its own object walks, in metres a second, as the server has it.
  float speed_m_s;
  // In what time what is shown goes over to what is known, down to a third, in seconds. 0 shows what is known.
  float smooth_s;
  // Not 0: it is told of a scene only after throng_ready.
  uint8_t waits_for_ready;
} ThrongSettings;

// Something that happened. What its kind says nothing of is 0.
typedef struct ThrongEvent {
  // Who it is about.
  uint64_t player;
  // What is announced; it lies there until the next throng_next_event.
  const uint8_t *bytes;
  // How much of it there is, in bytes.
  size_t length;
  // What happened.
  ThrongEventKind kind;
  // The object's number in the scene.
  uint32_t id;
  // How often that number was given out before.
  uint32_t generation;
  // The scene's number.
  uint32_t scene;
  // What its kind says.
  uint32_t number;
  // In metres to the right.
  float x;
  // In metres down.
  float y;
} ThrongEvent;

// How a client is doing.
typedef struct ThrongState {
  // The latest tick of the server that it heard of.
  uint64_t tick;
  // What the server's tick is by now, with its fraction; 0 before that is known.
  double server_tick;
  // The smoothed round trip of a packet, the server's tick included, in seconds; 0 before the first.
  double round_trip_s;
  // Events that were pushed out, since nobody asked for them.
  uint64_t missed_events;
  // The share of this client's packets that do not arrive, estimated: 0 to 1.
  float loss;
  // The length of a tick, in seconds; 0 before that is known.
  float tick_s;
  // The scene that the player is in, if is_in_scene.
  uint32_t scene;
  // The scene's width, in metres.
  float width_m;
  // The scene's height, in metres.
  float height_m;
  // The number of the own object, if has_own.
  uint32_t own_id;
  // How often that number was given out before.
  uint32_t own_generation;
  // The number of the last input that the server had handled; inputs are counted modulo 65,536.
  uint16_t last_input;
  // How fast simulated time passes, in percent of real time.
  uint8_t time_percent;
  // 1 where there is a connection: not yet where it is 0 and throng_update goes well.
  uint8_t is_connected;
  // 1 where the player is in a scene.
  uint8_t is_in_scene;
  // 1 where the player controls an object.
  uint8_t has_own;
} ThrongState;

// An object in sight.
typedef struct ThrongObject {
  // Its number in the scene.
  uint32_t id;
  // How often that number was given out before.
  uint32_t generation;
  // Where it is shown at the last throng_update, in metres to the right.
  float x;
  // The same, in metres down.
  float y;
  // The number of its kind.
  uint16_t kind;
  // Where it looks, in 256ths of a turn: 0 is +x, 64 is +y.
  uint8_t heading;
  // The storey that it is on, as the game counts them.
  uint8_t floor;
  // 1 where the player controls it, and it is shown ahead of the server.
  uint8_t is_own;
} ThrongObject;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The number of the library's interface.
uint32_t throng_abi(void);

// Writes why the last call of this thread failed that did: UTF-8 with a 0 at its end, cut to capacity bytes in all. Gives how many
// bytes there are without the 0; of a null pointer or no capacity nothing more happens.
//
// # Safety
// Of text capacity bytes can be written.
size_t throng_error(char *text,
                    size_t capacity);

// A player who walks at 1.5 m/s, needs no credential and loads nothing.
struct ThrongSettings throng_settings(uint64_t player);

// Begins to connect by a token of 2,048 bytes that was not used before, which the game's login service made. Whether the server lets it in
// shows in throng_update. Writes a client, to be given to throng_destroy, or null where that fails.
//
// # Safety
// Of token length bytes can be read, and of the settings' credential credential_length.
ThrongStatus throng_connect(const uint8_t *token,
                            size_t length,
                            const struct ThrongSettings *settings,
                            struct ThrongClient **client);

// Connects once more, by another token: what is known stays, and the session goes on if the server still keeps it.
//
// # Safety
// Of token length bytes can be read.
ThrongStatus throng_reconnect(struct ThrongClient *client,
                              const uint8_t *token,
                              size_t length);

// Goes on from another port, as a phone does that changes its network.
ThrongStatus throng_rebind(struct ThrongClient *client);

// Logs out, and frees a client. Of null nothing happens.
void throng_destroy(struct ThrongClient *client);

// Takes what came, and sends what is due: to be called once a frame, with seconds of a clock that begins anywhere from 0 on and never runs
// backwards. Of a connection that is over it says so again and again; events that came before wait.
ThrongStatus throng_update(struct ThrongClient *client,
                           double now_s);

// Writes the oldest event that was not told, or says THRONG_STATUS_NOTHING where there is none. 65,536 wait; further ones push the oldest
// out.
ThrongStatus throng_next_event(struct ThrongClient *client,
                               struct ThrongEvent *event);

// From now on the own object stands and looks there, in 256ths of a turn: 0 is +x, 64 is +y. Of buttons each bit is one that is held
// down, as the game defines them.
ThrongStatus throng_stand(struct ThrongClient *client,
                          uint8_t heading,
                          uint32_t buttons);

// From now on the own object walks on in a direction, in 256ths of a turn, a step each tick.
ThrongStatus throng_walk(struct ThrongClient *client,
                         uint8_t direction,
                         uint8_t heading,
                         uint32_t buttons);

// The own object goes to a place, in metres, where the game has moved it; the server checks that it may have come so far.
ThrongStatus throng_move(struct ThrongClient *client,
                         float x,
                         float y,
                         uint8_t heading,
                         uint32_t buttons);

// How fast the own object walks from now on, in metres a second.
ThrongStatus throng_set_speed(struct ThrongClient *client, float speed_m_s);

// The map that the own object walks on: from now on it stops at the walls at which the server would stop it. Of each tile, of
// tile_m metres, a byte, row by row: 0 is free. To be called anew in each scene.
//
// # Safety
// Of blocked width times height bytes can be read.
ThrongStatus throng_set_ground(struct ThrongClient *client,
                               const uint8_t *blocked,
                               uint32_t width,
                               uint32_t height,
                               float tile_m);

// The scene is loaded, and the player may be told of it; needed with waits_for_ready.
ThrongStatus throng_ready(struct ThrongClient *client, uint32_t scene);

// Sends a message of the game's own, of the type that the server registered with this number: once and in order.
//
// # Safety
// Of bytes length bytes can be read.
ThrongStatus throng_send(struct ThrongClient *client,
                         uint16_t kind,
                         const uint8_t *bytes,
                         size_t length);

// Writes how the client is doing.
ThrongStatus throng_state(const struct ThrongClient *client, struct ThrongState *state);

// Writes the objects in sight by ascending number, as far as capacity goes, and how many there are in all.
//
// # Safety
// Of objects capacity can be written.
ThrongStatus throng_objects(const struct ThrongClient *client,
                            struct ThrongObject *objects,
                            size_t capacity,
                            size_t *count);

// Writes an object in sight, or says THRONG_STATUS_NOTHING where none has this number.
ThrongStatus throng_object(const struct ThrongClient *client,
                           uint32_t id,
                           struct ThrongObject *object);

// Writes where the bytes of an object's attribute lie and how many they are, or says THRONG_STATUS_NOTHING where it has none of this
// number. They lie there until the next call that may change the client: any but those that take it as const.
ThrongStatus throng_attribute(const struct ThrongClient *client,
                              uint32_t id,
                              uint16_t attribute,
                              const uint8_t **bytes,
                              size_t *length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* THRONG_H */
